package split

import (
	"math"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// turn says when an instance has its turns at a bucket. Turns of several instances may overlap; see
// askBucketInTurn. Times are in ticks.
type turn struct {
	mine  bool  // it is this instance's turn
	phase int64 // since the last turn of this instance began
	next  int64 // until the next turn of this instance begins
	cost  int64 // what a request in the present turn is charged now, in events of the fleet
	lasts int64 // how long a turn lasts
	cycle int64 // from the beginning of one turn of this instance to that of the next
	em    int64 // the emission interval: how long an event takes to refill
}

// turnOf returns the turn of an instance at an instant of the wall clock, for requests that cost unit
// and have room for room events. It is not ok if a cycle is so long that sums of ticks may overflow.
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
	// The first term is paid for when the next turn begins; the second leaves room for one request only.
	t.cost = max(want-t.phase/t.em-1, t.phase/t.em+2)
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
	if t.cycle == 0 { // turnOf was not ok
		return reset
	}
	for at := t.next; ; at += t.cycle {
		left := max(0, reset-at)
		begun := max(0, left/t.em/2-1) // in events: before that, too little has drained for the cost
		for e := begun; e < begun+3 && e*t.em < t.lasts; e++ {
			pass := max(e*t.em, left-min(e+1, t.cycle/t.em-e-2)*t.em)
			if pass < min((e+1)*t.em, t.lasts) {
				return at + pass
			}
		}
	}
}
