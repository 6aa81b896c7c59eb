package rulefile

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
)

// queue reads `queue` of o, the line in which requests wait; nil if there is none.
func (d *decoder) queue(o object) *Queue {
	if !o.has("queue") {
		return nil
	}
	q := &Queue{Pos: o.pos("queue")} // returned even after a mistake: the queue is not missing
	n := o.get("queue")
	if n == nil {
		return q
	}
	in, ok := d.open(n, &queuePlace)
	if !ok {
		return q
	}
	hint := "write " + diag.Quote(queuePlace.example)
	if n := d.need(in, "places", queuePlace.name, hint); n != nil {
		q.Places, _ = d.whole(n, "`places`", 1, tidegate.MaxCount, "places: 100")
	}
	if n := d.need(in, "max_wait", queuePlace.name, hint); n != nil {
		q.MaxWait, _ = d.duration(n, "`max_wait`", tidegate.MaxPeriod, "2s")
	}
	if n := in.get("drop"); n != nil {
		who, _ := d.oneOf(n, "`drop`", "newest", "oldest")
		q.DropOldest = who == "oldest"
	}
	return q
}
