package rulefile

import (
	"fmt"
	"strings"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

const costHint = "write `cost: 5`, or `cost: { reserve: body.max_tokens, else: 1000, min: 1, max: 32000, settle: response.body.usage.total_tokens }`"

// cost reads `cost` of o; nil means that there is none.
func (d *decoder) cost(o object, sc scope) *Cost {
	n := o.get("cost")
	if n == nil {
		return nil
	}
	c := &Cost{Pos: o.pos("cost"), Min: 1, Max: tidegate.MaxCount}
	if n.Kind == yamltree.Scalar {
		d.fixedCost(n, c)
		return c
	}
	if n.Kind != yamltree.Map {
		d.fail(n.Pos, "`cost` is a number or a map, and this is "+n.What(), costHint)
		return c
	}
	in, _ := d.open(n, &costPlace)
	if n := in.get("reserve"); n != nil {
		c.ReservePos = n.Pos
		d.reserves(n, sc, c)
	}
	if n := in.get("settle"); n != nil {
		c.SettlePos = n.Pos
		c.Settle = d.settleAt(n)
	}
	if !in.has("reserve") && !in.has("settle") {
		d.fail(in.at, "`cost` says neither where the cost comes from nor where it is settled", costHint)
		return c
	}
	d.costNumbers(in, c)
	if !in.has("reserve") {
		c.Fixed = c.Else // the same estimate for every request
	}
	return c
}

// fixedCost reads `cost: 5`.
func (d *decoder) fixedCost(n *yamltree.Node, c *Cost) {
	if strings.TrimSpace(n.Value) == "0" {
		d.fail(n.Pos, "a request that costs nothing is not limited", "leave it out of the rule with `unless:`, or of all rules with `exempt:`")
		return
	}
	if s, _ := parseSource(or(strings.TrimSpace(n.Value), "?"), ""); s.Kind != SourceNone {
		d.fail(n.Pos, "a cost from the request needs `else` as well", "write "+diag.Quote("cost: { reserve: "+s.Text+", else: 1000, max: 32000 }"))
		return
	}
	c.Fixed, _ = d.whole(n, "`cost`", 1, tidegate.MaxCount, "cost: 5")
	c.Else = c.Fixed
}

// costNumbers reads min, max and else into c, and checks that else is between min and max.
func (d *decoder) costNumbers(in object, c *Cost) {
	numbers := []struct {
		word, example string
		to            *int64
	}{{"min", "min: 1", &c.Min}, {"max", "max: 32000", &c.Max}, {"else", "else: 1000", &c.Else}}
	fine := true
	for _, number := range numbers {
		n := in.get(number.word)
		if number.word == "else" {
			n = d.need(in, "else", "a cost from the request", "write what a request costs that does not say, as in `else: 1000`")
		}
		if n == nil {
			fine = fine && !in.has(number.word) && number.word != "else"
			continue
		}
		// Not 0: a check with a cost of 0 only peeks.
		v, ok := d.whole(n, diag.Quote(number.word), 1, tidegate.MaxCount, number.example)
		fine = fine && ok
		*number.to = v
	}
	switch {
	case !fine:
	case c.Min > c.Max:
		d.fail(in.pos("min"), fmt.Sprintf("`min` is %d, above `max`, which is %d", c.Min, c.Max), "make `min` at most `max`")
	case c.Else < c.Min || c.Else > c.Max:
		d.fail(in.pos("else"), fmt.Sprintf("`else` is %d, outside of `min` and `max`, which are %d and %d", c.Else, c.Min, c.Max), "make `else` lie between them")
	}
}

const reserveHint = "write `reserve: body.max_tokens`, a list whose first that is there counts, or `reserve: { sum: [body.prompt_tokens, body.max_tokens] }`"

// reserves reads the sources of the estimate into c: one, a list of which the first with a value
// counts, or a sum.
func (d *decoder) reserves(n *yamltree.Node, sc scope, c *Cost) {
	items := []*yamltree.Node{n}
	if n.Kind == yamltree.Map {
		in, _ := d.open(n, &reservePlace)
		if n = d.need(in, "sum", "a map after `reserve`", reserveHint); n == nil {
			return
		}
		c.Sum = true
		items = d.items(n, "`sum`", reserveHint)
	} else if n.Kind == yamltree.List {
		items = d.items(n, "`reserve`", reserveHint)
	}
	seen := make(map[string]bool)
	for _, item := range items {
		s := d.reserve(item, sc)
		switch {
		case s == nil:
		case seen[s.Text]:
			d.fail(item.Pos, diag.Quote(s.Text)+" is in the list twice", "remove one of them")
		case len(c.Reserve) == maxReserves:
			d.fail(item.Pos, fmt.Sprintf("a cost has at most %d places", maxReserves), "remove some")
			return
		default:
			seen[s.Text] = true
			c.Reserve = append(c.Reserve, *s)
		}
	}
}

// maxReserves bounds the lookups for one request.
const maxReserves = 16

// reserve reads a source of the estimate; nil after a mistake. Unlike the number of a limit, see
// believed, it may be a value that the client chooses.
func (d *decoder) reserve(n *yamltree.Node, sc scope) *Source {
	s, ok := d.source(n, "")
	if !ok || !d.unspelled(s) {
		return nil
	}
	if s.always() || s.Kind == SourceBasicUser || s.Kind == SourceTLSClientCN {
		d.fail(n.Pos, diag.Quote(s.Text)+" is never a number", "write where the number is found, such as `body.max_tokens` or `client header X-Cost`")
		return nil
	}
	if !d.findable(n.Pos, Identity{Name: Word{Text: "reserve"}, Sources: []Source{s}}, sc) {
		return nil
	}
	return &s
}

// settleAt reads where the response contains the true cost; "" after a mistake.
func (d *decoder) settleAt(n *yamltree.Node) string {
	const hint = "write `response.body.usage.total_tokens` or `response.header.X-Cost`"
	text, ok := d.text(n, "`settle`", hint)
	if !ok {
		return ""
	}
	field, body := strings.CutPrefix(text, "response.body.")
	name, header := strings.CutPrefix(text, "response.header.")
	switch {
	case body && dottedName(field) && !strings.ContainsAny(field, " \t\n"):
		return text
	case header && isToken(name):
		return text
	}
	fix := strings.TrimPrefix(strings.TrimPrefix(text, "response."), "body.")
	if dottedName(fix) && !strings.ContainsAny(fix, " \t\n") {
		d.fail(n.Pos, diag.Quote(text)+" is not a place in a response", "did you mean "+diag.Quote("response.body."+fix)+"?")
		return ""
	}
	d.fail(n.Pos, diag.Quote(text)+" is not a place in a response", hint)
	return ""
}
