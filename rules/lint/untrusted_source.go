package lint

import (
	"slices"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// Trust says which credentials the configuration for the rules verifies.
type Trust struct {
	JWT        bool     // tokens are verified
	APIKeys    bool     // API keys are looked up
	Attributes []string // of API keys; nil means that they are not known
}

func untrustedSource(p *pass) {
	if p.trust == nil {
		p.partly = true
		return
	}
	told := make(map[diag.Pos]bool) // a tier's terms are those of every rule that uses it
	check := func(s rulefile.Source, name, then string) {
		if !told[s.Pos] {
			told[s.Pos] = true
			p.checkTrust(s, name, then)
		}
	}
	for _, id := range p.whole.Identify {
		for _, s := range id.Sources {
			check(s, id.Name.Text, "it counts as missing")
		}
	}
	for _, r := range p.whole.Rules {
		eachUnnamed(r.Terms, check)
		for i := range r.For {
			eachUnnamed(r.For[i].Terms, check)
		}
	}
}

// eachUnnamed calls check with the sources that have no name in identify.
func eachUnnamed(t rulefile.Terms, check func(s rulefile.Source, name, then string)) {
	const never = "it is never there"
	if t.Limits != nil {
		for _, l := range t.Limits.All {
			if l.From != nil {
				check(l.From.Source, l.From.Source.Text, never)
			}
		}
	}
	if t.Quota != nil && t.Quota.AnchorFrom != nil {
		check(*t.Quota.AnchorFrom, t.Quota.AnchorFrom.Text, never)
	}
	if t.Cost != nil {
		for _, s := range t.Cost.Reserve {
			check(s, s.Text, never)
		}
	}
}

// checkTrust warns if s can never have a value.
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
