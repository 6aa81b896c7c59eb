package rulefile

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

const concurrencyHint = "write `concurrency: { slots: 20, lease: 30s }`"

// concurrency reads `concurrency` of o; nil when there is none. After a mistake, which it reports,
// the result lacks what could not be read.
func (d *decoder) concurrency(o object) *Concurrency {
	n := o.get("concurrency")
	if n == nil {
		return nil
	}
	c := &Concurrency{Pos: o.pos("concurrency"), Spec: tidegate.Spec{Algorithm: tidegate.Concurrency}}
	if n.Kind == yamltree.Scalar && allDigits(n.Value) {
		d.fail(n.Pos, "a slot needs a lease, after which it is free again even if its holder died", "write "+diag.Quote("concurrency: { slots: "+n.Value+", lease: 30s }"))
		return c
	}
	in, ok := d.open(n, &concurrencyPlace)
	if !ok {
		return c
	}
	if n := d.need(in, "slots", "`concurrency`", concurrencyHint); n != nil {
		c.Spec.Events, _ = d.whole(n, "`slots`", 1, tidegate.MaxLogEvents, "slots: 20")
	}
	if n := d.need(in, "lease", "`concurrency`", concurrencyHint); n != nil {
		c.Spec.Period, _ = d.duration(n, "`lease`", tidegate.MaxPeriod, "30s")
	}
	return c
}
