package rulefile

import (
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// queue reads the line in which requests wait; nil when there is none.
func (d *decoder) queue(o object) *Queue {
	if !o.has("queue") {
		return nil
	}
	q := &Queue{Pos: o.pos("queue")} // also where it says nothing that is right: it is not missing
	if n := o.get("queue"); n != nil {
		q.Places, q.MaxWait = d.placesAndTime(n, &queuePlace, "max_wait", "2s")
	}
	return q
}

// deferred reads how requests are kept; nil when they are not.
func (d *decoder) deferred(o object) *Defer {
	n := o.get("defer")
	if n == nil {
		return nil
	}
	q := &Defer{Pos: o.pos("defer")}
	q.Places, q.Keep = d.placesAndTime(n, &deferPlace, "keep", "24h")
	return q
}

// placesAndTime reads places and a time, which queue and defer have both.
func (d *decoder) placesAndTime(n *yamltree.Node, p *place, word, example string) (int64, time.Duration) {
	in, ok := d.open(n, p)
	if !ok {
		return 0, 0
	}
	var places int64
	var wait time.Duration
	hint := "write " + diag.Quote(p.example)
	if n := d.need(in, "places", p.name, hint); n != nil {
		places, _ = d.whole(n, "`places`", 1, tidegate.MaxCount, "places: 100")
	}
	if n := d.need(in, word, p.name, hint); n != nil {
		wait, _ = d.duration(n, diag.Quote(word), tidegate.MaxPeriod, example)
	}
	return places, wait
}
