package rulefile

import (
	"fmt"
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// table is limits by the values of identities.
type table struct {
	by    []Word // the identities; one with a mistake is empty
	cells []cell
}

// cell is the limits of one combination of values. If it has fewer values than the table has
// identities, it holds for all values of the others.
type cell struct {
	values []Word
	limits *Limits
}

// otherRow stands for all values that are not in the rows: in the rule file, and in keys.
const otherRow = "else"

const (
	tableHint = "write `limits: { by: [model, plan], rows: { large: { free: 10/minute, pro: 100/minute } }, else: 5/minute }`"
	maxCells  = 10_000 // of a rule, with its tiers and branches
	// maxMade bounds those of all rules. Package rules refuses as many limits, but only once they
	// have been read.
	maxMade = 500_000
)

// table reads limits by the values of identities. It returns the limits of values that are in
// no row, with the table attached.
func (d *decoder) table(n *yamltree.Node, pos diag.Pos, sc scope) *Limits {
	o, _ := d.open(n, &tablePlace)
	t := &table{}
	seen := make(map[string]bool)
	if by := d.need(o, "by", "a table of limits", tableHint); by != nil {
		for _, item := range d.oneOrMore(by, "`by`", tableHint) {
			w, ok := d.column(item, "`by`", sc)
			switch {
			case !ok:
			case seen[w.Text]:
				d.fail(item.Pos, diag.Quote(w.Text)+" is in the list twice", "remove one of them")
			default:
				seen[w.Text] = true
				t.by = append(t.by, w)
				continue
			}
			t.by = append(t.by, Word{}) // the rows below still have their depth
		}
	}
	if rows := d.need(o, "rows", "a table of limits", tableHint); rows != nil && len(t.by) > 0 {
		d.rows(rows, t, nil, sc)
	}
	l := &Limits{Pos: pos}
	if rest := d.need(o, otherRow, "a table of limits", "write the limits of all values that are not in the rows, as in `else: 5/minute`"); rest != nil {
		if read := d.limitsOf(rest, pos); read != nil {
			*l = *read
		}
	}
	l.table = t
	return l
}

// rows reads into t the rows in n, which is below the rows with the values above.
func (d *decoder) rows(n *yamltree.Node, t *table, above []Word, sc scope) {
	by := t.by[len(above)].Text
	if n.Kind == yamltree.Map && len(n.Fields) == 0 {
		d.fail(n.Pos, "the table has no rows here", tableHint)
	}
	if n.Kind != yamltree.Map {
		d.fail(n.Pos, fmt.Sprintf("rows are values of %s with what each has, and this is %s", diag.Quote(by), n.What()), tableHint)
		return
	}
	id, _ := d.file.Identity(by)
	seen := make(map[string]bool)
	for _, f := range n.Fields {
		value, ok := d.rowValue(f.Key, id, sc)
		if !ok {
			continue
		}
		spellings := id.spellings(value.Text)
		if !slices.ContainsFunc(spellings, func(text string) bool { return !seen[text] }) { // nothing would choose it
			d.fail(f.Key.Pos, diag.Quote(value.Text)+" is in the rows twice", "remove one of them")
			continue
		}
		for _, text := range spellings {
			seen[text] = true
		}
		values := append(above[:len(above):len(above)], value)
		switch {
		case f.Value.Kind == yamltree.Null:
			d.fail(f.Key.Pos, "nothing is written after "+diag.Quote(f.Key.Value+":"), tableHint)
		case f.Value.Kind == yamltree.Map && len(values) < len(t.by):
			d.rows(f.Value, t, values, sc)
		case f.Value.Kind == yamltree.Map && (isTable(f.Value) || !d.isLimit(f.Value)):
			d.fail(f.Value.Pos, fmt.Sprintf("a row of this table has a value for each of %s, and then the limits", diag.Choice(t.names())), tableHint)
		default:
			if l := d.limitsOf(f.Value, f.Key.Pos); l != nil {
				t.cells = append(t.cells, cell{values, l})
			}
		}
	}
}

func (t *table) names() []string {
	var all []string
	for _, w := range t.by {
		all = append(all, w.Text)
	}
	return all
}

// isLimit reports whether n has a field of a limit, even if others are wrong.
func (d *decoder) isLimit(n *yamltree.Node) bool {
	for _, f := range n.Fields {
		if f.Key.Value == "rate" || f.Key.Value == "from" || limitsPlace.advise(f.Key.Value).means == "rate" {
			return true
		}
	}
	return false
}

// isTable reports whether n is a table rather than a limit.
func isTable(n *yamltree.Node) bool {
	if n.Kind != yamltree.Map {
		return false
	}
	for _, f := range n.Fields {
		if f.Key.Value == "by" || f.Key.Value == "rows" {
			return true
		}
	}
	return false
}

// rowValue reads the key of a row as one value of id, normalized as id normalizes its values.
func (d *decoder) rowValue(key *yamltree.Node, id Identity, sc scope) (Word, bool) {
	const hint = "write one value, such as `large`; for anything else write `for: [{ when: … }]`"
	w := Word{strings.TrimSpace(key.Value), key.Pos}
	first, _, several := strings.Cut(w.Text, " ")
	switch {
	case w.Text == "":
		d.fail(key.Pos, "a row needs a value", hint)
		return w, false
	case w.Text == otherRow:
		d.fail(key.Pos, "`else` is for all values that are not in the rows, and belongs beside `rows`", tableHint)
		return w, false
	case w.Text == "absent" || w.Text == "present" || strings.Contains(w.Text, "*") || several && (first == "in" || first == "not"):
		d.fail(key.Pos, diag.Quote(w.Text)+" is not one value", hint)
		return w, false
	}
	if _, wrong := fitting(Test{Kind: TestLiteral, Text: w.Text}, id, sc); wrong != (mistake{}) {
		d.fail(key.Pos, wrong.message, wrong.hint)
		return w, false
	}
	w.Text = id.spelled(w.Text)
	return w, true
}
