package rulefile

import (
	"fmt"
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
)

// Finite is an identity of which a rule knows all values that matter: those in its tables and
// tiers. All other values are treated as one, in keys as well.
type Finite struct {
	Name   string
	Values []string
	Else   string // stands for all others in keys
}

// Finite returns the values of an identity that r knows; nil if any value may matter.
func (r *Rule) Finite(name string) *Finite {
	i := slices.IndexFunc(r.Known, func(f Finite) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &r.Known[i]
}

// expander turns the tiers and tables of a rule into branches, which it makes between and after the
// written ones. Those made for the tiers and rows under a written branch come before it, those for
// other requests after all written ones. The first branch that holds counts.
type expander struct {
	*decoder
	rule *Rule
	made []Branch
}

// expand returns the branches in before, which were written for r, with those that it makes for the
// tiers and tables of r. The written ones keep their terms, but lose their tables. ok is false if
// there would be too many.
func (d *decoder) expand(r *Rule, before []Branch) (made []Branch, ok bool) {
	own := r.Terms
	tiers := d.tiersOf(r)
	if len(tiers) == 0 && !hasTable(own, before) {
		return before, true
	}
	x := &expander{decoder: d, rule: r}
	for i := range before {
		if !x.under(&before[i], own, tiers) {
			return x.made, false
		}
	}
	ok = x.under(nil, own, tiers)
	return x.made, ok
}

// under adds the branches for the tiers and rows of requests that take the written branch b, and b
// itself; nil stands for requests that take none. It returns false if there are too many.
func (x *expander) under(b *Branch, own Terms, tiers []Tier) bool {
	var written Terms
	if b != nil {
		written = b.Terms
	}
	for i := range tiers {
		t := &tiers[i]
		if t.Name.Text != x.rule.Tier.Else.Text && !x.rows(b, t, over(over(own, t.Terms), written), true) {
			return false
		}
	}
	if !x.rows(b, nil, over(x.base(own, tiers), written), false) {
		return false
	}
	if b == nil {
		return true
	}
	plain := *b
	plain.Terms.Limits = plain.Terms.Limits.clone()
	return x.add(plain)
}

// base returns own, the terms of a rule, with those that the tier for all others sets replaced.
func (x *expander) base(own Terms, tiers []Tier) Terms {
	for _, t := range tiers {
		if t.Name.Text == x.rule.Tier.Else.Text {
			return over(own, t.Terms)
		}
	}
	return own
}

func hasTable(own Terms, branches []Branch) bool {
	return own.Limits.isTable() || slices.ContainsFunc(branches, func(b Branch) bool { return b.Terms.Limits.isTable() })
}

func (l *Limits) isTable() bool { return l != nil && l.table != nil }

// tiersOf returns the tiers that r chooses from.
func (d *decoder) tiersOf(r *Rule) []Tier {
	if r.Tier == nil {
		return nil
	}
	return d.file.Tiers
}

// rows adds a branch for every row of the table of terms.Limits, if they have one, and, if rest, one
// for all other values. Each has the conditions of b and of t, which may be nil, and terms. It returns
// false if there are too many.
func (x *expander) rows(b *Branch, t *Tier, terms Terms, rest bool) bool {
	made := Branch{Made: true, Whole: true, Pos: x.rule.Pos}
	if b != nil {
		made.When, made.Unless, made.Until, made.UntilPos, made.Reason, made.Pos = b.When, b.Unless, b.Until, b.UntilPos, b.Reason, b.Pos
		made.Within = b.Pos
	}
	if t != nil {
		made.Tier, made.Pos = t.Name.Text, t.Name.Pos
		made.When = also(made.When, x.rule.Tier.From, Word{x.spelled(x.rule.Tier.From.Text, t.Name.Text), t.Name.Pos})
	}
	var cells []cell
	if terms.Limits.isTable() {
		cells = terms.Limits.table.cells
		for _, c := range cells {
			one := made
			one.Terms = terms
			one.Terms.Limits = c.limits.clone()
			for i, v := range c.values {
				one.When = also(one.When, terms.Limits.table.by[i], v)
				one.Row = append(one.Row[:i:i], RowValue{terms.Limits.table.by[i].Text, v.Text})
			}
			if one.Pos = c.values[len(c.values)-1].Pos; !x.add(one) {
				return false
			}
		}
	}
	if !rest {
		return true
	}
	made.Terms = terms
	made.Terms.Limits = made.Terms.Limits.clone()
	return x.add(made)
}

// add appends b to the branches made. If there are as many as a rule or all rules may have, it reports
// that, and returns false.
func (x *expander) add(b Branch) bool {
	switch {
	case len(x.made) == maxCells:
		x.fail(x.rule.Name.Pos, fmt.Sprintf("the tiers, rows and branches of this rule make more than %d combinations", maxCells), "write fewer branches, or several rules")
		return false
	case x.room == 0:
		x.fail(x.rule.Name.Pos, "the tiers, rows and branches of all rules make more than 500,000 combinations", "write fewer tiers or rows, or use them in fewer rules")
		return false
	}
	x.room--
	x.made = append(x.made, b)
	return true
}

// spelled returns value, normalized as the identity of that name normalizes its values.
func (d *decoder) spelled(name, value string) string {
	id, _ := d.file.Identity(name)
	return id.spelled(value)
}

// also returns a copy of when with one more condition: name has the value.
func also(when []Condition, name, value Word) []Condition {
	return append(when[:len(when):len(when)], Condition{Name: name, Any: []Test{{Kind: TestLiteral, Text: value.Text, Pos: value.Pos}}})
}

// clone returns a copy without the table, so that what is still open in the limits can be decided for
// each rule by itself.
func (l *Limits) clone() *Limits {
	if l == nil {
		return nil
	}
	to := *l
	to.All, to.table = slices.Clone(l.All), nil
	return &to
}

// know sets r.Known to the values of identities that the tables and tiers of r name, and the tables of
// branches.
func (d *decoder) know(r *Rule, branches []Branch) {
	had := make(map[RowValue]bool)
	add := func(name, value, rest string) {
		if had[RowValue{name, value}] {
			return
		}
		had[RowValue{name, value}] = true
		f := r.Finite(name)
		if f == nil {
			r.Known = append(r.Known, Finite{Name: name, Else: rest})
			f = &r.Known[len(r.Known)-1]
		}
		f.Values = append(f.Values, value)
	}
	of := func(l *Limits) {
		if !l.isTable() {
			return
		}
		for _, c := range l.table.cells {
			for i, v := range c.values {
				add(l.table.by[i].Text, v.Text, otherRow)
			}
		}
	}
	if r.Tier != nil {
		rest := d.spelled(r.Tier.From.Text, r.Tier.Else.Text)
		add(r.Tier.From.Text, rest, rest)
		for _, t := range d.file.Tiers {
			add(r.Tier.From.Text, d.spelled(r.Tier.From.Text, t.Name.Text), rest)
			of(t.Terms.Limits)
		}
	}
	of(r.Terms.Limits)
	for i := range branches {
		of(branches[i].Terms.Limits)
	}
}

// expandRule replaces the tiers and tables of r by branches. It returns expired, the branches that have
// ended, with the same done to them.
func (d *decoder) expandRule(r *Rule, expired []Branch) []Branch {
	written, fits := slices.Concat(r.For, expired), true
	if len(expired) > 0 {
		past := *r
		expired, fits = d.expand(&past, expired)
	}
	made, ok := d.expand(r, r.For)
	if r.For = made; ok && fits { // otherwise the file is refused, and has too many to look at
		d.know(r, written)
	}
	r.Terms = (&expander{decoder: d, rule: r}).base(r.Terms, d.tiersOf(r))
	r.Terms.Limits = r.Terms.Limits.clone()
	d.deadTerms(r)
	return expired
}

// deadTerms warns if the limits of a rule have no effect because all its tiers set their own.
func (d *decoder) deadTerms(r *Rule) {
	tiers := d.tiersOf(r)
	if len(tiers) == 0 {
		return
	}
	all := func(says func(Terms) bool) bool {
		return !slices.ContainsFunc(tiers, func(t Tier) bool { return !says(t.Terms) })
	}
	if r.LimitsPos != (diag.Pos{}) && all(func(t Terms) bool { return t.Limits != nil }) {
		d.warn(r.LimitsPos, "the limits of this rule never hold, since every tier has its own", "remove `limits`, or put what is for all tiers into a rule of its own")
	}
}

// over returns base, with those that terms sets replaced.
func over(base, terms Terms) Terms {
	r := Rule{Terms: base}
	return r.Under(&Branch{Terms: terms})
}

// TierOf returns the name of the tier that a branch is for; for a branch without one, the tier for
// all others; "" if r has no tiers.
func (r *Rule) TierOf(b *Branch) string {
	switch {
	case r.Tier == nil:
		return ""
	case b != nil && b.Tier != "":
		return b.Tier
	}
	return r.Tier.Else.Text
}

// RowOf returns the row of a table that a branch is for, as in "large, free"; "else" if it is for
// no row, "" if r has no table.
func (r *Rule) RowOf(b *Branch) string {
	if b != nil && len(b.Row) > 0 {
		values := make([]string, len(b.Row))
		for i, v := range b.Row {
			values[i] = v.Value
		}
		return strings.Join(values, ", ")
	}
	if slices.ContainsFunc(r.For, func(b Branch) bool { return len(b.Row) > 0 }) {
		return otherRow
	}
	return ""
}
