package rulefile

import (
	"strings"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

const quotaHint = "write `quota: { amount: 1000000/month, zone: Asia/Seoul, anchor: 15 }`"

// quota reads `quota` of o, an amount per calendar period; nil if there is none, or it is
// a list or `unlimited`.
func (d *decoder) quota(o object) *Quota {
	n := o.get("quota")
	if n == nil {
		return nil
	}
	q := &Quota{Pos: o.pos("quota"), Spec: tidegate.Spec{Algorithm: tidegate.Quota, Anchor: 1}}
	switch n.Kind {
	case yamltree.Scalar:
		if n.Value == "unlimited" {
			d.fail(n.Pos, "a quota cannot be unlimited", "write a large amount such as `quota: 100000000/month`, or write the rule with `unless:`")
			return nil
		}
		d.amount(n, &q.Spec)
		return q
	case yamltree.List:
		d.fail(n.Pos, "a rule has one quota", "write one rule for each, with names of their own")
		return nil
	}
	in, ok := d.open(n, &quotaPlace)
	if !ok {
		return nil
	}
	if amount := d.need(in, "amount", "a quota", quotaHint); amount != nil {
		d.amount(amount, &q.Spec)
	}
	if zone := in.get("zone"); zone != nil {
		q.Spec.Zone = d.zone(zone)
	}
	if anchor := in.get("anchor"); anchor != nil {
		d.anchor(anchor, q)
	}
	if status := in.get("status"); status != nil {
		q.Status = d.status(status)
	}
	return q
}

func (d *decoder) amount(n *yamltree.Node, s *tidegate.Spec) {
	events, unit, ok := d.rate(n, "the amount of a quota", "1000/month")
	if !ok {
		return
	}
	s.Events = events
	text := strings.TrimSpace(n.Value)
	u, ok := units[unitOf(unit)]
	if ok && u.calendar != tidegate.NoCalendar {
		s.Calendar = u.calendar
		return
	}
	if _, err := time.ParseDuration(unit); ok || err == nil {
		d.fail(n.Pos, "a quota is per day, week, month or year of the calendar, and "+diag.Quote(text)+" is not", "for a time that passes use "+diag.Quote("limits: "+text))
		return
	}
	d.fail(n.Pos, unknownUnit(unit), unitHint(unit, strings.TrimSuffix(text, unit)))
}

func (d *decoder) zone(n *yamltree.Node) string {
	const hint = "write a name of the time zone database such as `Asia/Seoul` or `Europe/Berlin`, or leave it out for UTC"
	text, ok := d.text(n, "`zone`", hint)
	if !ok {
		return ""
	}
	if text == "Local" {
		d.fail(n.Pos, "`Local` is another zone on another machine", hint)
		return ""
	}
	if _, err := time.LoadLocation(text); err != nil {
		d.fail(n.Pos, diag.Quote(text)+" is not a time zone known on this machine", hint)
		return ""
	}
	return text
}

func (d *decoder) anchor(n *yamltree.Node, q *Quota) {
	if c := q.Spec.Calendar; c == tidegate.Day || c == tidegate.Week {
		d.fail(n.Pos, "only months and years have an anchor, and this quota is per "+c.String(), "take `anchor` out, or make it a quota per month")
		return
	}
	if n.Kind == yamltree.Scalar && !allDigits(strings.TrimPrefix(n.Value, "-")) {
		if s, ok := d.believed(n, "its own day of reset"); ok {
			q.AnchorFrom = &s
		}
		return
	}
	v, ok := d.whole(n, "`anchor`", 1, 31, "anchor: 15")
	if ok {
		q.Spec.Anchor = int(v)
	}
}

// status reads n as the status of a refusal; 0 after a mistake.
func (d *decoder) status(n *yamltree.Node) int {
	v, _ := d.whole(n, "the status of a refusal", 400, 599, "status: 403")
	return int(v)
}
