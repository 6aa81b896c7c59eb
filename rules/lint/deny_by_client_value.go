package lint

import (
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

func denyByClientValue(p *pass) {
	for _, r := range p.file.Rules {
		if !r.Deny || r.Mode == rulefile.Disabled {
			continue
		}
		for _, c := range r.When {
			if p.says(c.Name.Text, changes) && namesValues(c) {
				p.warn(c.Name.Pos, "a caller that is refused by "+diag.Quote(r.Name.Text)+" only has to send another "+diag.Quote(c.Name.Text)+", or none",
					"refuse by what cannot be changed, such as `ip: in LIST` or a verified identity, or limit the route `per: ip`")
				break
			}
		}
	}
}

// changes reports whether the caller can send another value for s without losing anything. It
// cannot change the name it logs in with.
func changes(s rulefile.Source) bool { return asserts(s) && s.Kind != rulefile.SourceBasicUser }

// namesValues reports whether c only tests for particular values.
func namesValues(c rulefile.Condition) bool {
	return all(c.Any, func(t rulefile.Test) bool {
		return t.Kind != rulefile.TestAbsent && t.Kind != rulefile.TestPresent
	})
}
