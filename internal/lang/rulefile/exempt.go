package rulefile

// exempt reads the requests that are exempt from all limits.
func (d *decoder) exempt(root object) {
	n := root.get("exempt")
	if n == nil {
		return
	}
	for _, item := range d.items(n, "`exempt`", "write `exempt: [{ match: /healthz }, { when: { ip: in partners } }]`") {
		o, ok := d.open(item, &exemptPlace)
		if !ok {
			continue
		}
		if !o.has("match") && !o.has("when") && !o.has("unless") {
			d.fail(item.Pos, "this would exempt every request", "write whom: `{ match: /healthz }` or `{ when: { ip: 10.0.0.0/8 } }`")
			continue
		}
		sc := d.match(o)
		d.file.Exempt = append(d.file.Exempt, Exempt{
			Pos:    item.Pos,
			Match:  sc.patterns,
			When:   d.conditions(o, "when", sc),
			Unless: d.conditions(o, "unless", sc),
		})
	}
}
