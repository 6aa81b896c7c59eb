package lint

import (
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

func pathInPer(p *pass) {
	for _, r := range p.file.Rules {
		if r.Mode == rulefile.Disabled || !p.manyPaths(r) {
			continue
		}
		for _, per := range r.Per {
			for _, s := range p.sources(per.Text) {
				if s.Kind == rulefile.SourcePath {
					p.fail(per.Pos, diag.Quote(r.Name.Text)+" counts per "+diag.Quote(per.Text)+", so a caller has a fresh counter for every path it invents",
						"write `route`, which is the pattern that matched, or `path {name}` for one segment of it")
				}
			}
		}
	}
}

// manyPaths reports whether requests for r have more than a few paths.
func (p *pass) manyPaths(r *rulefile.Rule) bool {
	for _, s := range p.shapes[r] {
		if s.below {
			return true
		}
		for _, segment := range s.segments {
			if segment.any {
				return true
			}
		}
	}
	return false
}
