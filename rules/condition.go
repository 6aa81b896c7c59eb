package rules

import (
	"maps"
	"net/netip"
	"slices"

	"tidegate.dev/tidegate/internal/lang/route"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// condition is what a when or unless requires of one identity: at least one of its tests passes.
type condition struct {
	id              *identity
	absent, present bool                // having no value, or any, is enough
	literals        []string            // up to fewLiterals
	set             map[string]struct{} // in place of literals if there are more
	globs           []string
	networks        networks
	lists           []*list
	byAddress       bool   // networks or lists may hold the address
	fold            bool   // the value is compared without its case
	text            string // the tests, as they were written
}

// fewLiterals is the largest number of literals for which comparing one by one is faster than
// hashing.
const fewLiterals = 8

// conditions hold when all of them do; an empty list always holds.
type conditions []condition

// whenUnless is the when and the unless of a rule, a branch, a class or an exemption.
type whenUnless struct{ when, unless conditions }

// unconditional is shared by all that have neither. It is never written to.
var unconditional = new(whenUnless)

func (c *compiler) whenUnless(when, unless []rulefile.Condition) *whenUnless {
	if len(when) == 0 && len(unless) == 0 {
		return unconditional
	}
	return &whenUnless{c.conditions(when), c.conditions(unless)}
}

func (c *compiler) conditions(written []rulefile.Condition) conditions {
	if len(written) == 0 {
		return nil
	}
	made := make(conditions, len(written))
	for i := range written {
		made[i] = c.condition(&written[i])
	}
	return made
}

func (c *compiler) condition(w *rulefile.Condition) condition {
	made := condition{id: c.ids.find(w.Name.Text), text: conditionText(w)}
	made.fold = c.config.IgnoreCase && made.id.ofPath()
	spell := made.spellings()
	var prefixes []netip.Prefix
	var literals []string
	for _, t := range w.Any {
		switch t.Kind {
		case rulefile.TestLiteral:
			literals = append(literals, spelled(t.Text, spell)...)
		case rulefile.TestGlob:
			made.globs = append(made.globs, spelled(t.Text, spell)...)
		case rulefile.TestPrefix:
			prefixes = append(prefixes, t.Prefix)
			literals = append(literals, t.Text)
		case rulefile.TestIn:
			l := c.lists[t.Text]
			if spell != nil {
				l = l.respelled(spell)
			}
			made.lists = append(made.lists, l)
			made.byAddress = made.byAddress || !l.networks.empty()
		case rulefile.TestAbsent:
			made.absent = true
		case rulefile.TestPresent:
			made.present = true
		}
	}
	slices.Sort(literals)
	literals = slices.Compact(literals) // two may be spelled alike
	made.networks = newNetworks(prefixes)
	made.byAddress = made.byAddress || len(prefixes) > 0
	if len(literals) <= fewLiterals {
		made.literals = literals
		return made
	}
	made.set = make(map[string]struct{}, len(literals))
	for _, l := range literals {
		made.set[l] = struct{}{}
	}
	return made
}

// spellings returns how each source of the identity normalizes its values (case, for example); nil if
// none does. What values are compared with is normalized in the same ways.
func (c *condition) spellings() []func(string) string {
	var all []func(string) string
	for i := range c.id.sources {
		if c.id.sources[i].kind == rulefile.SourceHost {
			all = append(all, spelledHost)
			continue
		}
		spelling := c.id.sources[i].spelling
		if spelling == 0 && !c.fold {
			continue
		}
		all = append(all, func(text string) string {
			if c.fold {
				text = route.Fold(text)
			}
			return spelling.Apply(text)
		})
	}
	if len(all) > 0 && len(all) < len(c.id.sources) {
		all = append(all, func(text string) string { return text })
	}
	return all
}

// spelled returns text in each of the spellings, or as it is if there are none.
func spelled(text string, spellings []func(string) string) []string {
	if len(spellings) == 0 {
		return []string{text}
	}
	all := make([]string, len(spellings))
	for i, spell := range spellings {
		all[i] = spell(text)
	}
	return all
}

// values returns the literals of a condition that has no other tests, else nil. Rules and branches
// are indexed by them, so that those that require other values are not even looked at.
func (c *condition) values() []string {
	if c.id.local || c.fold || c.absent || c.present || len(c.globs) > 0 || c.byAddress || len(c.lists) > 0 {
		return nil
	}
	if c.set == nil {
		return c.literals
	}
	return slices.Sorted(maps.Keys(c.set))
}

func (g *whenUnless) holds(st *state, h *hit) bool {
	return g.when.hold(st, h) && (len(g.unless) == 0 || !g.unless.hold(st, h))
}

func (cs conditions) hold(st *state, h *hit) bool {
	return cs.failing(st, h) == nil
}

// failing returns the first condition that does not hold.
func (cs conditions) failing(st *state, h *hit) *condition {
	for i := range cs {
		if !cs[i].holds(st, h) {
			return &cs[i]
		}
	}
	return nil
}

func (c *condition) holds(st *state, h *hit) bool {
	v, ok := st.find(c.id, h)
	if !ok {
		return c.absent
	}
	if c.present || c.hasText(v.text) {
		return true
	}
	return c.byAddress && c.hasAddress(st.addressOf(c.id, v))
}

func (c *condition) hasText(value string) bool {
	if c.fold {
		value = route.Fold(value)
	}
	if slices.Contains(c.literals, value) {
		return true
	}
	if _, ok := c.set[value]; ok {
		return true
	}
	if anyGlob(c.globs, value) {
		return true
	}
	for _, l := range c.lists {
		if l.hasText(value) {
			return true
		}
	}
	return false
}

func (c *condition) hasAddress(addr netip.Addr) bool {
	if c.networks.contains(addr) {
		return true
	}
	for _, l := range c.lists {
		if l.networks.contains(addr) {
			return true
		}
	}
	return false
}
