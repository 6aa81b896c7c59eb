package rulefile

import (
	"slices"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

const matchHint = "write a pattern or a list: `match: [POST /posts, PUT /posts/]`"

// match reads the patterns of a rule, a class or an exemption.
func (d *decoder) match(o object) scope {
	sc := scope{unsure: slices.Contains(o.meant, "match") || o.has("match") && o.get("match") == nil}
	n := o.get("match")
	if n == nil {
		return sc
	}
	items := d.oneOrMore(n, "`match`", matchHint)
	seen := make(map[[3]string]bool)
	sc.unsure = len(items) == 0
	for _, item := range items {
		p, ok := d.pattern(item)
		if !ok {
			sc.unsure = true
			continue
		}
		key := [3]string{p.Method, p.Host, p.Path}
		if seen[key] {
			d.fail(item.Pos, "pattern "+diag.Quote(p.Text)+" is in the list twice", "take one out")
			continue
		}
		seen[key] = true
		sc.patterns = append(sc.patterns, p)
	}
	return sc
}

func (d *decoder) pattern(n *yamltree.Node) (Pattern, bool) {
	text, ok := d.text(n, "a pattern", matchHint)
	if !ok {
		return Pattern{}, false
	}
	p, wrong := parsePattern(text)
	if wrong != (mistake{}) {
		d.fail(n.Pos, wrong.message, wrong.hint)
		return Pattern{}, false
	}
	p.Word = Word{text, n.Pos}
	return p, true
}
