package rulefile

import "tidegate.dev/tidegate/internal/lang/yamltree"

// Layers are what a node does before it asks the store of a fleet; a rule can switch them off.
type Layers struct {
	NoDenyCache bool // the store is asked again even if it has just refused the key
	NoCoalesce  bool // each request is a call of its own, even if several for a key come together
}

var consistencyPlace = place{
	name:    "`consistency`",
	words:   []string{"mode", "deny_cache", "coalesce"},
	example: "consistency: { mode: strict, deny_cache: false }",
	advice: map[string]advice{
		"cache":    {"deny_cache", "did you mean `deny_cache`?"},
		"batch":    {"coalesce", "did you mean `coalesce`?"},
		"strict":   {"mode", "write `mode: strict`"},
		"leased":   {"mode", "write `mode: leased`"},
		"eventual": {"mode", "write `mode: eventual`"},
		"split":    {"mode", "write `mode: split`"},
	},
}

// consistency reads how a fleet shares the counters: a word, or a map with it.
func (d *decoder) consistency(n *yamltree.Node, p *policies) {
	mode := func(n *yamltree.Node, what string) (Word, bool) {
		text, ok := d.oneOf(n, what, "strict", "leased", "eventual", "split")
		return Word{text, n.Pos}, ok
	}
	if n.Kind != yamltree.Map {
		if word, ok := mode(n, "`consistency`"); ok {
			p.consistency, p.layers = word, Layers{}
		}
		return
	}
	o, ok := d.open(n, &consistencyPlace)
	if !ok {
		return
	}
	p.consistency, p.layers = Word{"strict", n.Pos}, Layers{}
	if n := o.get("mode"); n != nil {
		if word, ok := mode(n, "`mode`"); ok {
			p.consistency = word
		}
	}
	if n := o.get("deny_cache"); n != nil {
		p.layers.NoDenyCache = !d.yes(n, "`deny_cache`")
	}
	if n := o.get("coalesce"); n != nil {
		p.layers.NoCoalesce = !d.yes(n, "`coalesce`")
	}
}
