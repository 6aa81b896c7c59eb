package rulefile

import (
	"strings"
	"time"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

const forHint = "write `for: [{ when: { role: premium }, limits: 1000/minute }]`"

// branches reads `for` into r.For, and returns the map of each branch. Branches that have ended are
// not in r.For but in expired: they no longer apply, but a counter must not change its algorithm on
// the day they end.
func (d *decoder) branches(o object, r *Rule, sc scope) (maps []object, expired []Branch) {
	n := o.get("for")
	if n == nil {
		return nil, nil
	}
	for _, item := range d.items(n, "`for`", forHint) {
		in, ok := d.open(item, &branchPlace)
		if !ok {
			continue
		}
		maps = append(maps, in)
		b := d.branch(in, o, sc)
		if b.Until.IsZero() || b.Until.After(d.now) {
			r.For = append(r.For, b)
			continue
		}
		expired = append(expired, b)
		d.warn(b.UntilPos, "this branch ended at "+b.Until.Format(time.RFC3339)+" and is ignored", "remove it, or give it a later `until`")
	}
	return maps, expired
}

func (d *decoder) branch(in, rule object, sc scope) Branch {
	b := Branch{
		Pos:    in.at,
		When:   d.conditions(in, "when", sc),
		Unless: d.conditions(in, "unless", sc),
		Terms:  d.terms(in, sc),
	}
	if n := in.get("until"); n != nil {
		b.UntilPos = n.Pos
		b.Until = d.until(n)
	}
	if n := in.get("reason"); n != nil {
		b.Reason, _ = d.text(n, "`reason`", "write why the branch is there: `reason: \"migration, ticket 4711\"`")
	}
	if !in.has("when") && !in.has("unless") && !in.has("until") {
		d.fail(in.at, "this branch always holds, so the limits of the rule never do", "write for whom it is: `when: { role: premium }`, or change the rule itself")
	}
	if !in.saysAny(termWords) {
		d.fail(in.at, "this branch replaces nothing", "write what it replaces: "+diag.Choice(termWords))
	}
	if !rule.has("tier") { // the rule may choose a tier that has them
		d.companions(in, []object{in, rule})
	}
	return b
}

// termWords are the fields of [Terms].
var termWords = []string{"limits", "quota", "concurrency", "over", "cost", "queue"}

func (o object) saysAny(words []string) bool {
	for _, w := range words {
		if o.has(w) {
			return true
		}
	}
	return false
}

// until parses n as an instant. It returns the zero time, and reports that, if n is not one.
func (d *decoder) until(n *yamltree.Node) time.Time {
	hint := "write date, time and zone: `2030-01-31T00:00:00Z` or `2030-01-31T00:00:00+09:00`"
	text, ok := d.text(n, "`until`", hint)
	if !ok {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, text)
	if err == nil {
		return t
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02 15:04", time.DateTime, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02T15:04Z07:00"} {
		if t, err := time.Parse(layout, strings.TrimSuffix(text, " UTC")); err == nil {
			hint = "write date, time and zone: " + diag.Quote(t.Format(time.RFC3339))
		}
	}
	d.fail(n.Pos, diag.Quote(text)+" is not an instant with date, time and zone", hint)
	return time.Time{}
}
