package client

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// Only calls that are later than usual give up their turn, and only after a refusal.
func TestLateCallsMissTheirTurn(t *testing.T) {
	const ms, slack = time.Millisecond, 15 * time.Millisecond
	for _, usual := range []time.Duration{0, ms, 40 * ms, time.Second} {
		var p punctuality
		now := testNow
		miss := func(late time.Duration) bool {
			now = now.Add(20 * ms)
			return p.missed(late, slack, now)
		}
		settle := func() {
			t.Helper()
			for i := range 200 {
				if miss(usual + time.Duration(i%3)*ms) {
					t.Fatalf("a call that is as late as usual, %s, misses its turn", usual)
				}
			}
		}
		settle()
		if miss(usual + time.Second) {
			t.Errorf("usually %s: a call misses its turn, and nobody was refused", usual)
		}
		p.refused(now, time.Second)
		settle()
		if miss(usual + slack/2) {
			t.Errorf("usually %s: a call that is a little late misses its turn", usual)
		}
		if !miss(usual + 2*slack) {
			t.Errorf("usually %s: a late call does not miss its turn", usual)
		}
		now = now.Add(strictFor + 2*time.Second)
		if miss(usual + time.Second) {
			t.Errorf("usually %s: a call misses its turn, long after a refusal", usual)
		}
	}
}

// Refusals of calls that were in time leave a part of the turns unused: each a larger one, those of
// one stop once, and less with time.
func TestMarginFollowsRefusals(t *testing.T) {
	var p punctuality
	now := testNow
	unused := func() (n int) {
		for range 3200 {
			if p.missed(0, time.Second, now) {
				n++
			}
		}
		return n
	}
	f := func(want int) {
		t.Helper()
		if n := unused(); n < want-1 || n > want+1 {
			t.Errorf("%d of 3200 turns are left unused, want %d", n, want)
		}
	}
	f(0)
	p.refused(now, 4*time.Second) // the first only makes late calls miss their turn
	f(0)
	for i := range 12 {
		now = now.Add(6 * time.Second)
		p.changed = now // no time has passed for the margin
		for range 20 {
			p.refused(now, 4*time.Second)
		}
		f(min(100*(i+1), 800))
	}
	now = now.Add(marginTime)
	f(700)
	now = now.Add(3 * marginTime)
	f(400)
	now = now.Add(6 * marginTime)
	f(0)
}

// However calls come, no period and a little more has more of them than Pace says.
func TestPace(t *testing.T) {
	for _, events := range []int64{1, 2, 7, 50, 1000, 99_999} {
		for _, period := range []time.Duration{time.Millisecond, 77 * time.Millisecond, time.Second, time.Minute, 24 * time.Hour} {
			if period/time.Duration(events) < time.Microsecond {
				continue // not a valid limit
			}
			t.Run(fmt.Sprint(events, " ", period), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					limit, store := Pace(events, period), memory.New()
					calls := min(3*events, 3000)
					var turns []time.Duration
					for range calls {
						d, err := store.Take(t.Context(), []tidegate.Check{{Key: "k", Limit: limit, Cost: 1, MaxWait: time.Hour}}, 1)
						if err != nil || !d.OK { // it cannot be booked as far ahead
							break
						}
						turns = append(turns, d.Wait)
					}
					room := period / 33
					for i := int64(0); i+events < int64(len(turns)); i++ {
						if span := turns[i+events] - turns[i]; span < period+room {
							t.Fatalf("%d calls in %s", events+1, span)
						}
					}
					for i := 1; i < len(turns); i++ {
						if gap, even := turns[i]-turns[i-1], limit.Period/time.Duration(events); gap < even-time.Microsecond || gap > even+time.Microsecond {
							t.Fatalf("%s between two calls, want %s", gap, even)
						}
					}
				})
			})
		}
	}
	for _, bad := range []func(){func() { Pace(0, time.Second) }, func() { Pace(1, 0) }, func() { Pace(-1, time.Second) }} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("a limit that is not valid is accepted")
				}
			}()
			bad()
		}()
	}
}
