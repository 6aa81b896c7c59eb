package split

import (
	"math"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// turn is where an instance stands in the turns of a bucket, in ticks.
type turn struct {
	mine  bool
	phase int64 // since the last one began
	next  int64 // until the next one begins
	cost  int64 // what a request costs now, in events of the fleet
	lasts int64
	cycle int64 // from one turn to the next
	em    int64 // what an event takes to refill
}

// turnOf is not ok if the bucket is so slow that its turns cannot be told by an instant.
func turnOf(l *tidegate.Limit, unit, room int64, m members, wall int64) (t turn, ok bool) {
	t.em = emission(l)
	want := unit * m.n
	if want > math.MaxInt64/8/t.em {
		return t, false
	}
	t.cycle = want * t.em
	t.lasts = min(max(room-unit, unit), want-1) * t.em
	if t.phase = (wall - m.rank*unit*t.em) % t.cycle; t.phase < 0 {
		t.phase += t.cycle
	}
	t.mine = t.phase < t.lasts
	t.next = t.cycle - t.phase
	t.cost = max(want-t.phase/t.em-1, t.phase/t.em+2) // only one passes, and is paid for by then
	return t, true
}

// emission is how many ticks an event takes to refill.
func emission(l *tidegate.Limit) int64 {
	period := int64(l.Period/time.Microsecond) * algo.Micro
	return (period + l.Events - 1) / l.Events
}

// free is until a request passes in a later turn, if what is used has drained after reset:
// then what is left and what it costs are no more than there is room for.
func (t turn) free(reset int64) int64 {
	if t.cycle == 0 {
		return reset
	}
	for at := t.next; ; at += t.cycle {
		left := max(0, reset-at)
		begun := max(0, left/t.em/2-1) // events; before that it costs too much
		for e := begun; e < begun+3 && e*t.em < t.lasts; e++ {
			pass := max(e*t.em, left-min(e+1, t.cycle/t.em-e-2)*t.em)
			if pass < min((e+1)*t.em, t.lasts) {
				return at + pass
			}
		}
	}
}
