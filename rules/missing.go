package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/jwt"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// MissingIdentity is how often rules asked for an identity that the request did not have.
type MissingIdentity struct {
	Identity string
	Source   string // where it was looked for, as written; several are joined by commas
	Requests int64  // since the rules were first loaded, if they are in a Live
}

// MissingIdentities are those of all identities that a request may not have, by name. Where
// none of its sources has a value, an identity is missing; what the path alone has is left
// out.
func (s *Set) MissingIdentities() []MissingIdentity {
	var all []MissingIdentity
	for _, name := range slices.Sorted(maps.Keys(s.ids.byName)) {
		id := s.ids.byName[name]
		if id.local || id.always {
			continue
		}
		var sources []string
		for i := range id.sources {
			sources = append(sources, id.sources[i].text)
		}
		all = append(all, MissingIdentity{strings.TrimSpace(name), strings.Join(sources, ", "), id.missed.Load()})
	}
	return all
}

// countOn lets the counts of missing identities go on from those of the Set before.
func (s *Set) countOn(before *Set) {
	for name, id := range s.ids.byName {
		if was := before.ids.byName[name]; was != nil && was != id {
			id.missed.Store(max(id.missed.Load(), was.missed.Load()))
		}
	}
}

// Rejected is how often a credential was shown that is not accepted.
type Rejected struct {
	Kind     string // token or api_key
	Reason   string // expired, unknown, …
	Requests int64
}

// Rejected are the tokens and API keys that counted as missing because of what they are, by
// kind and reason. Only those are looked at that a rule asks for.
func (s *Set) Rejected() []Rejected {
	var all []Rejected
	if j := s.config.Trust.JWT; j != nil {
		for _, r := range jwt.Reasons() {
			all = append(all, Rejected{"token", r.String(), j.rejected[r].Load()})
		}
	}
	if k := s.config.Trust.APIKeys; k != nil {
		for r := range k.rejected {
			all = append(all, Rejected{"api_key", keyReasonTexts[r], k.rejected[r].Load()})
		}
	}
	return all
}

// WithoutAPIKey tells, rule by rule, what happens to requests whose API key is not known, as
// after it was revoked. Rules that do not ask for keys are left out.
func (s *Set) WithoutAPIKey() []string {
	var all []string
	for i := range s.entries {
		e := &s.entries[i]
		switch {
		case e.rule == nil:
			if names := e.conds.keyNames(); len(names) > 0 {
				what := "the exemption at "
				if e.exempt != nil {
					what += place(e.exempt.Pos)
				} else {
					what = "the class " + s.className(i)
				}
				all = append(all, what+" takes them for requests without "+strings.Join(names, " and "))
			}
		case e.rule.mode != rulefile.Disabled:
			if text := e.rule.withoutAPIKey(e.conds.keyNames()); text != "" {
				all = append(all, "rule "+e.rule.name+" "+text)
			}
		}
	}
	return all
}

// withoutAPIKey is what the rule makes of a request that has lost its key; "" if it does not
// ask for one.
func (r *rule) withoutAPIKey(conditions []string) string {
	var told []string
	for i := range r.subject.parts {
		p := &r.subject.parts[i]
		at := slices.IndexFunc(p.id.sources, func(s source) bool { return s.kind == rulefile.SourceAPIKey })
		if at < 0 || r.deny {
			continue
		}
		after := p.id.sources[at:]
		for len(after) > 0 && after[0].kind == rulefile.SourceAPIKey {
			after = after[1:]
		}
		switch {
		case at > 0 || len(after) > 0:
			told = append(told, fmt.Sprintf("counts them by another source of %s, if they have one", p.id.name))
		case p.missing == rulefile.MissingSkip:
			told = append(told, "does not apply to them")
		case p.missing == rulefile.MissingRefuse:
			told = append(told, "refuses them with 400")
		default:
			told = append(told, "counts them by address")
		}
	}
	for i := range r.plans {
		conditions = append(conditions, r.plans[i].conds.keyNames()...)
	}
	slices.Sort(conditions)
	if names := slices.Compact(conditions); len(names) > 0 {
		told = append(told, "takes them for requests without "+strings.Join(names, " and "))
	}
	return strings.Join(slices.Compact(told), ", and ")
}

// keyNames are the identities of conditions that are read from API keys.
func (g *whenUnless) keyNames() []string {
	var names []string
	for _, c := range slices.Concat(g.when, g.unless) {
		if slices.ContainsFunc(c.id.sources, func(s source) bool { return s.kind == rulefile.SourceAPIKey }) {
			names = append(names, c.id.name)
		}
	}
	return names
}
