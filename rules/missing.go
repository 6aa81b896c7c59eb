package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/jwt"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// MissingIdentity is how often rules needed an identity that the request did not have.
type MissingIdentity struct {
	Identity string
	Source   string // where it was looked for, as written; several are joined by commas
	Requests int64  // since the rules were first loaded, if they are in a Live
}

// MissingIdentities returns the counts of all identities that a request may lack, by name. An
// identity is missing if none of its sources has a value. Identities from the path alone are left
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

// countOn continues the counts of missing identities of the previous Set.
func (s *Set) countOn(before *Set) {
	for name, id := range s.ids.byName {
		if was := before.ids.byName[name]; was != nil && was != id {
			id.missed.Store(max(id.missed.Load(), was.missed.Load()))
		}
	}
}

// Rejected is how often credentials of one kind were rejected for one reason.
type Rejected struct {
	Kind     string // token or api_key
	Reason   string // expired, unknown, …
	Requests int64
}

// Rejected returns how many tokens and API keys were treated as missing because they are not valid,
// by kind and reason. Credentials that no rule asks for are not checked.
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

// WithoutAPIKey says, rule by rule, what happens to requests whose API key is unknown, for example
// because it was revoked. Rules that do not use keys are left out.
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

// withoutAPIKey returns what the rule does with a request that has lost its key; "" if the rule does
// not use keys.
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

// keyNames returns the identities of conditions that come from API keys.
func (g *whenUnless) keyNames() []string {
	var names []string
	for _, c := range slices.Concat(g.when, g.unless) {
		if slices.ContainsFunc(c.id.sources, func(s source) bool { return s.kind == rulefile.SourceAPIKey }) {
			names = append(names, c.id.name)
		}
	}
	return names
}
