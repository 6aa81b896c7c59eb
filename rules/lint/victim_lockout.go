package lint

import (
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// victimLockout finds rules that count failures, or block, only by names that anybody can send.
func victimLockout(p *pass) {
	for _, r := range p.file.Rules {
		if r.Mode == rulefile.Disabled || r.Count == nil && r.Block == 0 || len(r.Per) == 0 {
			continue
		}
		if !all(r.Per, func(per rulefile.Word) bool { return p.publicName(per.Text) }) {
			continue
		}
		var names []string
		for _, per := range r.Per {
			names = append(names, per.Text)
		}
		joined := strings.Join(names, ", ")
		p.warn(r.PerPos, diag.Quote(r.Name.Text)+" counts tries per "+diag.Quote(joined)+", which anybody can send to lock somebody else out",
			"count the tries of each address for each name, `per: [ip, "+joined+"]`, and those of an address for all names in a rule of its own, `per: ip`")
	}
}

// publicName reports whether callers can know and send other callers' values of name: it is the
// name of an account rather than a key or a session.
func (p *pass) publicName(name string) bool {
	return all(p.sources(name), func(s rulefile.Source) bool {
		switch s.Kind {
		case rulefile.SourceBody, rulefile.SourceQuery, rulefile.SourcePathWildcard, rulefile.SourceBasicUser:
			return true
		}
		return false
	})
}
