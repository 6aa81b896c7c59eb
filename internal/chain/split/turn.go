package split

import (
	"math"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// turn says where an instance is in the sequence of turns of a bucket. Times are in ticks.
type turn struct {
	mine  bool  // it is this instance's turn
	phase int64 // since the last turn of this instance began
	next  int64 // until the next turn of this instance begins
	cost  int64 // what a request costs now, in events of the fleet
	lasts int64 // how long a turn lasts
	cycle int64 // from the beginning of one turn of this instance to that of the next
	em    int64 // what an event takes to refill
}

// turnOf returns the turn of an instance. It is not ok if the bucket is so slow that its turns cannot
// be computed from an instant.
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
	t.cost = max(want-t.phase/t.em-1, t.phase/t.em+2) // so that only one request passes, and is paid for by the next turn
	return t, true
}

// emission returns how many ticks an event takes to refill.
func emission(l *tidegate.Limit) int64 {
	period := int64(l.Period/time.Microsecond) * algo.Micro
	return (period + l.Events - 1) / l.Events
}

// free returns how long it is until a request passes in a later turn, if what is used will have
// drained after reset.
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
