// Package rulediff tells in words what is different between two rule files: which rules,
// tiers, lists and settings were added, removed or changed, and which limits are lower.
//
// It compares what files mean, not how they are written: `limits: 100/minute` and `limits:
// { rate: 100/minute }` are the same. What becomes of counters is told by rules.Compare.
//
// Start with [Compare].
package rulediff

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// Kind is what happened to something.
type Kind string

const (
	Added   Kind = "added"
	Removed Kind = "removed"
	Changed Kind = "changed"
)

// Change is something of a rule file that is different.
type Change struct {
	Kind   Kind    `json:"kind"`
	What   string  `json:"what"` // rule, tier, list, identity, exemption, setting, domain
	Name   string  `json:"name"`
	Fields []Field `json:"fields,omitempty"`
}

// Field is what a rule says in one place. Was is "" if it said nothing there, and Now if it
// no longer does.
type Field struct {
	Name string `json:"name"` // limits; limits of the tier pro
	Was  string `json:"was,omitempty"`
	Now  string `json:"now,omitempty"`
	// Effect is "lowered" if whoever it is for may do less, "raised" if more; "" if that
	// cannot be said.
	Effect string `json:"effect,omitempty"`
}

// Effects of changed limits.
const (
	Lowered = "lowered"
	Raised  = "raised"
)

// Lowers reports whether a limit of c is lower than before.
func (c *Change) Lowers() bool {
	return slices.ContainsFunc(c.Fields, func(f Field) bool { return f.Effect == Lowered })
}

// Compare returns what is different in now, first the rules, by name. Either may be nil,
// which has nothing.
func Compare(old, now *rulefile.File) []Change {
	a, b := partsOf(old), partsOf(now)
	var all []Change
	for _, what := range whats {
		all = append(all, compareParts(what, a[what], b[what])...)
	}
	return all
}

// whats are the kinds of things that a file has, in the order in which they are told.
var whats = []string{"rule", "tier", "list", "identity", "exemption", "setting", "domain"}

// part is something that has a name, as fields.
type part struct {
	fields   []field
	branches map[string]bool // of a rule, by whom they are for: whether what they do not name does not hold
	tier     bool            // it is one: what it does not name is as each rule says
}

// field is what a part says in one place; limits is set if that is limits.
type field struct {
	name, text string
	limits     *rulefile.Limits
	spec       *tidegate.Spec   // of a quota or of slots
	values     *map[string]bool // of a list

	word   string // limits, quota, …: what a branch may have in place of the rule's own
	branch string // whom the branch is for; "" for the rule itself
	made   bool   // the branch is a tier or a row, which another tier or row does not overlap
}

// partsOf returns the parts of a file by what they are and their names.
func partsOf(f *rulefile.File) map[string]map[string]part {
	all := make(map[string]map[string]part)
	for _, what := range whats {
		all[what] = make(map[string]part)
	}
	if f == nil {
		return all
	}
	for _, r := range f.Rules {
		all["rule"][r.Name.Text] = ruleFields(r)
	}
	for i := range f.Tiers {
		all["tier"][f.Tiers[i].Name.Text] = part{fields: termFields(f.Tiers[i].Terms), tier: true}
	}
	for i := range f.Lists {
		all["list"][f.Lists[i].Name.Text] = listFields(&f.Lists[i])
	}
	for i := range f.Identify {
		id := &f.Identify[i]
		all["identity"][id.Name.Text] = part{fields: []field{{name: "from", text: text(id.Sources)}}}
	}
	for i := range f.Exempt {
		all["exemption"][text(f.Exempt[i])] = part{}
	}
	for _, s := range settings(f) {
		all["setting"][s.name] = part{fields: []field{s}}
	}
	for _, d := range f.Domains {
		name := filepath.Base(d.Name)
		same := all["domain"][name].fields // of another folder
		all["domain"][name] = part{fields: append(same, field{name: fmt.Sprint("text ", len(same)), text: string(d.Text)})}
	}
	return all
}

func compareParts(what string, old, now map[string]part) (all []Change) {
	names := slices.Sorted(maps.Keys(now))
	for name := range old {
		if _, ok := now[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		was, had := old[name]
		is, has := now[name]
		c := Change{Kind: Changed, What: what, Name: name, Fields: compareFields(was, is)}
		switch {
		case !had:
			c.Kind = Added
		case !has:
			c.Kind, c.Fields = Removed, nil
		case len(c.Fields) == 0:
			continue
		}
		if what == "domain" { // its text is not for a line
			c.Fields = nil
		}
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(a, b Change) int { return cmp.Compare(order[a.Kind], order[b.Kind]) })
	return all
}

// order is that of changes of one kind of thing.
var order = map[Kind]int{Added: 0, Removed: 1, Changed: 2}

// compareFields returns the fields that differ, in the order of the language.
func compareFields(old, now part) (all []Field) {
	was := make(map[string]field)
	for _, f := range old.fields {
		was[f.name] = f
	}
	for _, f := range now.fields {
		before, found := was[f.name]
		delete(was, f.name)
		switch {
		case !found:
			all = append(all, Field{Name: f.name, Now: f.text, Effect: effects(old.replacing(f, now), []field{f})})
		case before.differs(f):
			all = append(all, fieldChange(before, f))
		}
	}
	for _, f := range old.fields {
		if _, gone := was[f.name]; gone {
			all = append(all, Field{Name: f.name, Was: f.text, Effect: effects([]field{f}, now.replacing(f, old))})
		}
	}
	return all
}

// replacing returns what may hold in p for those whom f is for, which p does not say and other does.
func (p part) replacing(f field, other part) (all []field) {
	whole, same := p.branches[f.branch]
	switch {
	case p.tier || other.tier:
		return nil
	case f.branch == "" || whole:
		return []field{{}}
	}
	own := field{}
	for _, g := range p.fields {
		_, both := other.branches[g.branch]
		switch {
		case g.word != f.word:
		case g.branch == "":
			own = g
		case same: // that branch holds for them, and leaves this as it is in the rule
		case !f.made || !both:
			all = append(all, g)
		}
	}
	return append(all, own)
}

// differs reports whether two fields of a name mean something else: the order of limits does not.
func (f field) differs(g field) bool {
	if f.limits == nil || g.limits == nil {
		return f.text != g.text
	}
	a, b := limitTexts(f.limits), limitTexts(g.limits)
	slices.Sort(a)
	slices.Sort(b)
	return !slices.Equal(a, b)
}

func fieldChange(was, now field) Field {
	f := Field{Name: now.name, Was: was.text, Now: now.text, Effect: effect(was, now)}
	if now.values != nil && was.values != nil {
		f.Was, f.Now = "", valuesChange(*was.values, *now.values)
	}
	return f
}
