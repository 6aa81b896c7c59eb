package rules

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
	"tidegate.dev/tidegate/rules/envoy"
)

// order is a measure, compiled for a Set.
type order struct {
	measure *Measure
	who     []holder // all must match
	rank    int      // of several orders that match, the one with the lowest rank counts
	rule    *rule    // nil means that it is a ban of all requests

	limit   *tidegate.Limit // of a ban
	key     string          // the key of the refused caller
	variant *variant        // of an override
}

// ended reports whether the order has ended. It reads the clock only if the order has an end.
func (o *order) ended(st *state) bool {
	return !o.measure.Until.IsZero() && o.measure.Ended(st.set.config.now())
}

// measureCompiler turns measures into orders.
type measureCompiler struct {
	set      *Set
	rules    map[string]*rule
	ids      map[string]*identity // built-in ones that no rule uses
	variants map[string]*variant
	bans     map[banKey]*tidegate.Limit
	before   *measures // nil means none of this Set
	problems []MeasureProblem
	id       string // of the current measure
}

// banKey is what distinguishes the limits of bans.
type banKey struct{ rule, scope, message string }

// newMeasureCompiler returns a compiler that reuses what was made for before, if that belongs to
// the same Set: layers and stores recognize limits by their addresses.
func newMeasureCompiler(s *Set, before *measures) *measureCompiler {
	c := &measureCompiler{
		set: s, rules: make(map[string]*rule, len(s.rules)), ids: make(map[string]*identity),
		variants: make(map[string]*variant), bans: make(map[banKey]*tidegate.Limit),
	}
	if before != nil && before.set == s {
		c.before = before
	}
	for _, r := range s.rules {
		c.rules[r.name] = r
	}
	return c
}

func (c *measureCompiler) fail(field, message, hint string) {
	c.problems = append(c.problems, MeasureProblem{ID: c.id, Field: field, Message: message, Hint: hint})
}

// order compiles a measure. It returns nil, and adds problems, if the measure cannot be in force.
func (c *measureCompiler) order(m *Measure) *order {
	c.id = m.ID
	before := len(c.problems)
	o := &order{measure: m}
	if m.Rule != "" {
		o.rule = c.rule(m)
	}
	switch m.Kind {
	case Ban:
		if len(m.Limits) > 0 {
			c.fail("limits", "a ban refuses everything, so it has no limits", "take them out, or order an override")
		}
	case Override:
		if m.Rule == "" {
			c.fail("rule", "an override is about one rule", "write which: "+c.ruleNames())
		}
	default:
		c.fail("kind", diag.Quote(string(m.Kind))+" is not a kind of measure", "write `ban` or `override`")
	}
	o.who = c.who(m)
	if len(c.problems) > before {
		return nil
	}
	if m.Kind == Ban {
		o.limit, o.key = c.banLimit(m), m.key()
		return o
	}
	if o.variant = c.variant(m, o.rule); o.variant == nil {
		return nil
	}
	return o
}

// rule returns the rule that m names; nil if there is a problem.
func (c *measureCompiler) rule(m *Measure) *rule {
	r := c.rules[m.Rule]
	switch {
	case r == nil && c.unmeasured(m.Rule):
	case r == nil:
		hint := "the rules are " + c.ruleNames()
		if near := diag.Nearest(m.Rule, c.set.Rules()); near != "" {
			hint = "did you mean " + diag.Quote(near) + "?"
		} else if len(c.set.Rules()) == 0 {
			hint = "the files have no rules"
		}
		c.fail("rule", "there is no rule "+diag.Quote(m.Rule), hint)
	case r.mode == rulefile.Disabled:
		c.fail("rule", "the rule "+diag.Quote(m.Rule)+" is disabled, and holds for nobody", "")
		return nil
	case m.Kind == Override && r.deny:
		c.fail("rule", "the rule "+diag.Quote(m.Rule)+" denies, and has no limits that could be others", "change the rule: `unless: { user: … }`")
		return nil
	}
	return r
}

// unmeasured reports whether name is one that metrics and lists of offenders show as a rule but
// that no measure can be about. Then it adds a problem that says why.
func (c *measureCompiler) unmeasured(name string) bool {
	if name == throttleRule {
		c.fail("rule", diag.Quote(name)+" stands for the limits that callers of CL.THROTTLE bring along, for which there are no measures",
			"let them send other numbers, or ask a rule with TG.CHECK")
		return true
	}
	const without, instead = " of Envoy's rate limit service, for which there are no measures", "change its file, or write a rule"
	for _, domain := range c.set.domains.Domains() {
		d := c.set.domains.Domain(domain)
		switch {
		case name == domain:
			c.fail("rule", diag.Quote(name)+" is a domain"+without, instead)
			return true
		case name == domain+".override":
			c.fail("rule", diag.Quote(name)+" stands for the limits that Envoy brings along in descriptors of the domain "+diag.Quote(domain)+without, "change them in Envoy, or write a rule")
			return true
		case slices.ContainsFunc(d.Rules(), func(r *envoy.Rule) bool { return r.Path == name }):
			c.fail("rule", diag.Quote(name)+" is a descriptor of the domain "+diag.Quote(domain)+without, instead)
			return true
		}
	}
	return false
}

// throttleRule is the rule name under which decisions of CL.THROTTLE are counted.
const throttleRule = "cl.throttle"

func (c *measureCompiler) ruleNames() string {
	names := c.set.Rules()
	if len(names) > 8 {
		names = append(names[:8:8], "…")
	}
	return strings.Join(names, ", ")
}

// banLimit returns the limit that refuses; bans with the same answer share one.
func (c *measureCompiler) banLimit(m *Measure) *tidegate.Limit {
	key := banKey{cmp.Or(m.Rule, BanRule), strings.Join(slices.Sorted(maps.Keys(m.As)), ","), m.Message}
	made := c.bans[key]
	if made == nil && c.before != nil {
		made = c.before.limits[key]
	}
	if made != nil {
		c.bans[key] = made
		return made
	}
	answer := c.set.denied
	if m.Message != "" {
		answer.Message, answer.Body, answer.ContentType = m.Message, "", ""
	}
	made = tidegate.MustLimit(tidegate.Spec{
		Name: key.rule, Scope: key.scope, Algorithm: tidegate.Deny, Terms: &tidegate.Terms{Rule: key.rule, Answer: answer},
	})
	c.bans[key] = made
	return made
}

// key returns the banned caller in the form of a counter key.
func (m *Measure) key() string {
	var values []string
	for _, name := range slices.Sorted(maps.Keys(m.As)) {
		values = append(values, m.As[name])
	}
	if len(values) == 1 && len(values[0]) <= tidegate.MaxKey {
		return values[0]
	}
	return tidegate.Key(values...)
}

// variant returns the limits that m puts in place of those of r; nil if that is not possible.
func (c *measureCompiler) variant(m *Measure, r *rule) *variant {
	if len(m.Limits) > maxMeasureLimits {
		c.fail("limits", fmt.Sprintf("there are %d limits, and %d are allowed", len(m.Limits), maxMeasureLimits), "write fewer")
		return nil
	}
	key := r.name + "\n" + strings.Join(m.Limits, "\n")
	made := c.variants[key]
	if made == nil && c.before != nil {
		made = c.before.variants[key]
	}
	if made != nil {
		c.variants[key] = made
		return made
	}
	written, problems := rulefile.ReadOrder(r.written(), m.Limits)
	made = &variant{rule: r, written: written}
	if !problems.HasErrors() {
		problems = made.check()
	}
	for _, p := range problems {
		if p.Severity == diag.Error {
			c.fail("limits", p.Message, p.Hint)
		}
	}
	if problems.HasErrors() {
		return nil
	}
	c.variants[key] = made
	return made
}
