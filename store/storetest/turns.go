package storetest

import (
	"math/rand/v2"
	"slices"
	"time"

	"tidegate.dev/tidegate"
)

// outflow is a leaky bucket that lets five a second out, one every 200 ms.
var outflow = tidegate.MustLimit(tidegate.Spec{Name: "outflow", Events: 5, Period: time.Second, Burst: 9, Algorithm: tidegate.LeakyBucket})

const every = 200 * time.Millisecond

// departure is the turn of an admitted request: from when it may leave until the
// next one may.
type departure struct {
	from, to time.Time
	receipt  tidegate.Receipt
	cost     int64
}

// depart takes cost events, which must be admitted, and returns their turn.
func (s *subject) depart(key string, cost int64) departure {
	s.Helper()
	d := s.admit(tidegate.Check{Key: key, Limit: outflow, Cost: cost, MaxWait: time.Minute})
	from := s.clock.now().Add(d.Wait)
	return departure{from, from.Add(time.Duration(cost) * every), after(d.Receipt, turnAfter(d.Wait)), cost}
}

// giveBack returns all events of a turn but the first keep of them.
func (s *subject) giveBack(key string, d departure, kept int64) {
	s.Helper()
	s.adjust(after(d.receipt, outflow.Turn(kept)), tidegate.Check{Key: key, Limit: outflow, Cost: kept - d.cost})
}

// testTurnsOnce: whatever is given back, whole or in part, before its turn or after
// it began, no turn overlaps one that somebody else still has.
func testTurnsOnce(s *subject) {
	r := rand.New(rand.NewPCG(4, 12))
	reused := 0
	for _, key := range []string{"ann", "bob", "cid", "dan"} {
		var held []departure
		var free time.Time // where the queue has ended at its longest
		for range 500 {
			switch r.IntN(4) {
			case 0, 1:
				cost := 1 + r.Int64N(3)
				c := tidegate.Check{Key: key, Limit: outflow, MaxWait: time.Minute}
				if left := s.takeN(1, c).Remaining; left < cost {
					continue
				}
				got := s.depart(key, cost)
				for _, other := range held {
					if got.from.Before(other.to) && other.from.Before(got.to) {
						s.Fatalf("a turn from %s to %s, while somebody has that from %s to %s",
							got.from.Format(clockFace), got.to.Format(clockFace), other.from.Format(clockFace), other.to.Format(clockFace))
					}
				}
				if got.from.Before(free) {
					reused++
				}
				held = append(held, got)
				if got.to.After(free) {
					free = got.to
				}
			case 2:
				if len(held) == 0 {
					continue
				}
				i := len(held) - 1 - r.IntN(min(3, len(held)))
				kept := r.Int64N(held[i].cost)
				s.giveBack(key, held[i], kept)
				if kept == 0 {
					held = slices.Delete(held, i, i+1)
				} else {
					held[i].cost, held[i].to = kept, held[i].from.Add(time.Duration(kept)*every)
				}
			default:
				s.clock.add(time.Duration(r.IntN(10)) * every / 4)
			}
		}
	}
	if reused < 50 {
		s.Errorf("only %d turns that were given back were used again: the last in line is anybody's", reused)
	}
}

const clockFace = "05.000000"

// testTurnHole: of three that leave at 0, 200 and 400 ms the second gives its turn
// back, before it or after it began; nobody else leaves at 400 ms. What the last in
// line gives back is the next one's, but not more than that was.
func testTurnHole(s *subject) {
	f := func(after time.Duration, which int, cost int64, want time.Duration) {
		s.Helper()
		start := s.clock.now()
		key := start.Format(clockFace)
		turns := []departure{s.depart(key, 1), s.depart(key, 1), s.depart(key, 1)}
		s.at(start, after)
		turns[which].cost = cost
		s.giveBack(key, turns[which], 0)
		if got := s.depart(key, 1).from.Sub(start); got != want {
			s.Errorf("of turns at 0, 200 and 400 ms number %d gives back %d after %s, and the next leaves at %s: want %s", which+1, cost, after, got, want)
		}
		s.clock.add(time.Minute)
	}
	for after := time.Duration(0); after <= 600*time.Millisecond; after += 50 * time.Millisecond {
		f(after, 0, 1, 3*every)
		f(after, 1, 1, 3*every)
		f(after, 2, 1, max(after, 2*every))
		f(after, 2, 100, max(after, 2*every)) // more than it had
	}
}
