package lint

import (
	"slices"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// Trust is what the configuration that the rules run with believes.
type Trust struct {
	JWT        bool     // tokens are verified
	APIKeys    bool     // API keys are looked up
	Attributes []string // of API keys; nil means that they are not known
}

func untrustedSource(p *pass) {
	if p.trust == nil {
		return
	}
	for _, id := range p.whole.Identify {
		for _, s := range id.Sources {
			p.checkTrust(s, id.Name.Text, "it counts as missing")
		}
	}
	for _, r := range p.whole.Rules {
		p.checkTerms(r.Terms)
		for i := range r.For {
			p.checkTerms(r.For[i].Terms)
		}
	}
}

// checkTerms looks at the sources that are written without a name.
func (p *pass) checkTerms(t rulefile.Terms) {
	const never = "it is never there"
	if t.Limits != nil {
		for _, l := range t.Limits.All {
			if l.From != nil {
				p.checkTrust(l.From.Source, l.From.Source.Text, never)
			}
		}
	}
	if t.Quota != nil && t.Quota.AnchorFrom != nil {
		p.checkTrust(*t.Quota.AnchorFrom, t.Quota.AnchorFrom.Text, never)
	}
	if t.Cost != nil && t.Cost.Reserve != nil {
		p.checkTrust(*t.Cost.Reserve, t.Cost.Reserve.Text, never)
	}
}

// checkTrust warns if nothing will be found in s.
func (p *pass) checkTrust(s rulefile.Source, name, then string) {
	name = diag.Quote(name)
	switch {
	case s.Kind == rulefile.SourceJWT && !p.trust.JWT:
		p.warn(s.Pos, name+" is read from tokens, and no key is configured to verify them: "+then, "set `trust.jwt` in the configuration")
	case s.Kind != rulefile.SourceAPIKey:
	case !p.trust.APIKeys:
		p.warn(s.Pos, name+" is read from API keys, and no file of keys is configured: "+then, "set `trust.api_keys` in the configuration; `tidegate api-keys add NAME` makes the file")
	case s.Arg != "" && p.trust.Attributes != nil && !slices.Contains(p.trust.Attributes, s.Arg):
		hint := "add the column to the first line of the file"
		if near := diag.Nearest(s.Arg, p.trust.Attributes); near != "" {
			hint = "did you mean " + diag.Quote("api_key."+near) + "?"
		}
		p.warn(s.Pos, name+" is read from API keys, and their file has no column "+diag.Quote(s.Arg)+": "+then, hint)
	}
}
