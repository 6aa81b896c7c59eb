package rulefile

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// ReadLimits reads limits in the notation of `limits`, for other languages that include it: a rate,
// a map with `rate`, or a list of these. Tables and numbers from requests are not allowed. lines
// are the lines of the file that contains n. A limit that names no algorithm stays Auto.
func ReadLimits(n *yamltree.Node, lines diag.Lines) ([]Limit, diag.List) {
	d := newDecoder(n.Pos.File, Options{})
	d.file.lines[n.Pos.File] = lines
	var all []Limit
	for _, item := range d.oneOrMore(n, "`limits`", limitsHint) {
		switch {
		case item.Kind == yamltree.Scalar && item.Value == "unlimited":
			d.fail(item.Pos, "`unlimited` is not a limit", "write `unlimited: true` in its place")
		case isTable(item):
			d.fail(item.Pos, "a limit is a rate, and this is a table", "write `limits: 100/minute`, or a list of such")
		case item.Kind == yamltree.Map && hasField(item, "from"):
			d.fail(item.Pos, "a limit is a rate here, and does not come from a request", "write `limits: 100/minute`; a request can bring a limit along as its override")
		default:
			l, ok := d.limit(item)
			if !ok {
				continue
			}
			if _, err := tidegate.NewLimit(l.Spec); err != nil {
				d.fail(l.Pos, err.Error(), limitsHint)
			}
			all = append(all, l)
		}
	}
	return all, d.problems.List()
}

func hasField(n *yamltree.Node, word string) bool {
	for _, f := range n.Fields {
		if f.Key.Value == word {
			return true
		}
	}
	return false
}
