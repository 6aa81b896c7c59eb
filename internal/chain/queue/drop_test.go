package queue

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/store/memory"
)

// dropping is a limit with a queue of places in which the oldest makes room.
func dropping(a tidegate.Algorithm, events, places int64, maxWait time.Duration) *tidegate.Limit {
	spec := tidegate.Spec{Name: "dropping", Events: events, Period: time.Second, Algorithm: a, Terms: &tidegate.Terms{
		Handling: tidegate.Handling{Queue: &tidegate.Queue{Places: places, MaxWait: maxWait, DropOldest: true}},
	}}
	switch a {
	case tidegate.LeakyBucket:
		spec.Burst = places
	case tidegate.TokenBucket:
		spec.Burst = 1
	}
	return tidegate.MustLimit(spec)
}

// checkOf waits as rules have it: a bucket is booked ahead by its places.
func checkOf(l *tidegate.Limit) tidegate.Check {
	c := tidegate.Check{Key: "k", Limit: l, Cost: 1}
	q := l.Terms.Handling.Queue
	switch l.Algorithm {
	case tidegate.LeakyBucket:
		c.MaxWait = q.MaxWait
	case tidegate.TokenBucket:
		c.MaxWait = min(q.MaxWait, time.Duration(q.Places)*l.Period/time.Duration(l.Events))
	}
	return c
}

// The oldest of a full queue is refused at once, those behind it move up, and the last to come
// has the last place.
func TestOldestIsDropped(t *testing.T) {
	for _, a := range []tidegate.Algorithm{tidegate.LeakyBucket, tidegate.TokenBucket} {
		synctest.Test(t, func(t *testing.T) {
			s := New(chain.Adapt(memory.New()))
			c := crowd{store: s, start: time.Now()}
			check := checkOf(dropping(a, 10, 2, time.Minute))
			for i := range 5 { // one goes, two wait, two more come
				c.send(t.Context(), i, check)
			}
			c.Wait()
			c.want(t, departure{who: 0}, departure{who: 1, refused: true}, departure{who: 2, refused: true}, departure{who: 3, after: 100 * ms}, departure{who: 4, after: 200 * ms})
			if s.Waiting() != 0 || len(s.turns.byID) != 0 {
				t.Errorf("%s: %d wait in %d queues at the end", a, s.Waiting(), len(s.turns.byID))
			}
		})
	}
}

func TestOldestIsDroppedFromALineThatIsNotBooked(t *testing.T) {
	for _, a := range []tidegate.Algorithm{tidegate.SlidingLog, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SubWindows} {
		synctest.Test(t, func(t *testing.T) {
			s := New(chain.Adapt(memory.New()))
			c := crowd{store: s, start: time.Now()}
			check := checkOf(dropping(a, 1, 2, time.Minute))
			for i := range 5 {
				c.send(t.Context(), i, check)
			}
			c.Wait()
			refused := map[int]bool{1: true, 2: true}
			for _, d := range c.left {
				if d.refused != refused[d.who] || d.err != nil || d.refused && d.after > 0 {
					t.Errorf("%s: %+v; want 1 and 2 to be refused at once, and no others", a, d)
				}
			}
			if len(c.left) != 5 || s.Waiting() != 0 || len(s.retries.byID) != 0 {
				t.Errorf("%s: %d left, %d wait in %d queues at the end", a, len(c.left), s.Waiting(), len(s.retries.byID))
			}
		})
	}
}

// After a reload that leaves fewer places, as many are dropped as are too many.
func TestFewerPlacesDropMore(t *testing.T) {
	for _, a := range []tidegate.Algorithm{tidegate.SlidingLog, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SubWindows} {
		synctest.Test(t, func(t *testing.T) {
			s := New(chain.Adapt(memory.New()))
			c := crowd{store: s, start: time.Now()}
			for i := range 5 { // one goes, four wait
				c.send(t.Context(), i, checkOf(dropping(a, 1, 4, time.Minute)))
			}
			c.send(t.Context(), 5, checkOf(dropping(a, 1, 2, time.Minute)))
			if n := s.Waiting(); n != 2 {
				t.Errorf("%s: %d wait in 2 places", a, n)
			}
			c.Wait()
			refused := map[int]bool{1: true, 2: true, 3: true}
			for _, d := range c.left {
				if d.refused != refused[d.who] || d.err != nil {
					t.Errorf("%s: %+v; want 1, 2 and 3 to be refused, and no others", a, d)
				}
			}
		})
	}
}

// Who is dropped is charged nothing, and who takes the place is charged to its other limits, or
// refused by them.
func TestDroppedIsNotCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(chain.Adapt(memory.New()))
		other := tidegate.MustLimit(tidegate.Spec{Name: "other", Events: 3, Period: time.Hour, Algorithm: tidegate.SlidingLog})
		checks := []tidegate.Check{checkOf(dropping(tidegate.LeakyBucket, 10, 1, time.Minute)), {Key: "k", Limit: other, Cost: 1}}
		used := func() int64 {
			d, err := s.Take(t.Context(), []tidegate.Check{{Key: "k", Limit: other}}, 1)
			if err != nil {
				t.Fatal(err)
			}
			return other.Events - d.Remaining
		}
		answers := make([]chan tidegate.Decision, 5)
		for i := range answers {
			answers[i] = make(chan tidegate.Decision, 1)
			go func() {
				d, _ := s.Take(t.Context(), append([]tidegate.Check(nil), checks...), 1)
				answers[i] <- d
			}()
			synctest.Wait()
			if want := min(int64(i)+1, 2); used() != want {
				t.Errorf("after %d: %d used of the other limit, want %d: of one that went and one that waits", i+1, used(), want)
			}
		}
		for i, want := range []bool{true, false, false, false, true} {
			if d := <-answers[i]; d.OK != want || !want && (d.RetryAfter <= 0 || d.RetryAfter > 100*ms || d.Limit.Name != "dropping") {
				t.Errorf("request %d: %+v, want OK %v", i, d, want)
			}
		}
		if _, err := s.Take(t.Context(), []tidegate.Check{{Key: "k", Limit: other, Cost: 1}}, 1); err != nil {
			t.Fatal(err)
		}
		go func() { s.Take(t.Context(), append([]tidegate.Check(nil), checks...), 1) }()
		synctest.Wait()
		if d, _ := s.Take(t.Context(), checks, 1); d.OK || d.Limit != other {
			t.Errorf("%+v, want a refusal by the other limit", d)
		}
		time.Sleep(time.Second)
	})
}

// Whoever leaves the queue frees its slots, also one that has the place of another.
func TestWhoLeavesAPlaceThatWasTakenFreesSlots(t *testing.T) {
	for _, a := range []tidegate.Algorithm{tidegate.LeakyBucket, tidegate.TokenBucket} {
		synctest.Test(t, func(t *testing.T) {
			store := memory.New()
			s := New(chain.Adapt(store))
			slots := tidegate.Slots(10, time.Hour)
			checks := []tidegate.Check{{Key: "k", Limit: slots, Cost: 1}, checkOf(dropping(a, 1, 1, time.Minute))}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for range 5 { // one goes, and of those that come then each takes the place of the last
				go func() { s.Take(ctx, append([]tidegate.Check(nil), checks...), 1) }()
				synctest.Wait()
			}
			if d := tidegate.New(store, slots).Peek(t.Context(), "k"); d.Remaining != 8 {
				t.Errorf("%s: %d of 10 slots are free, with one held and one that waits", a, d.Remaining)
			}
			cancel()
			synctest.Wait()
			if d := tidegate.New(store, slots).Peek(t.Context(), "k"); d.Remaining != 9 {
				t.Errorf("%s: %d of 10 slots are free when who waited has left, and one is held", a, d.Remaining)
			}
		})
	}
}

// Whatever comes, waits, leaves and is dropped, no turn is used twice: the outflow is that of the
// limit, and nobody is left behind.
func TestDroppingKeepsThePace(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			s := New(chain.Adapt(memory.New()))
			c := crowd{store: s, start: time.Now()}
			limit := dropping([]tidegate.Algorithm{tidegate.LeakyBucket, tidegate.TokenBucket}[seed%2], 10, 1+random.Int64N(5), time.Minute)
			const all = 60
			for i := range all {
				check := checkOf(limit)
				ctx := t.Context()
				if random.IntN(4) == 0 {
					short, cancel := context.WithTimeout(ctx, time.Duration(random.IntN(400))*ms)
					defer cancel()
					ctx = short
				}
				c.send(ctx, i, check)
				time.Sleep(time.Duration(random.IntN(60)) * ms)
			}
			c.Wait()
			last := time.Duration(-1)
			for _, d := range c.left {
				if d.refused || d.err != nil {
					continue
				}
				if last >= 0 && d.after-last < 100*ms-time.Microsecond {
					t.Errorf("seed %d: %d left %s after the one before it, want 100ms", seed, d.who, d.after-last)
				}
				last = d.after
			}
			if len(c.left) != all || s.Waiting() != 0 || len(s.turns.byID) != 0 {
				t.Errorf("seed %d: %d answers, %d wait in %d queues", seed, len(c.left), s.Waiting(), len(s.turns.byID))
			}
		})
	}
}

// Whoever gets the place of the oldest is told which of its advisory checks were over.
func TestWhoGetsAPlaceIsToldWhatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(chain.Adapt(memory.New()))
		check := checkOf(dropping(tidegate.LeakyBucket, 10, 2, time.Minute))
		shadow := tidegate.Check{
			Key: "k", Limit: tidegate.MustLimit(tidegate.Spec{Name: "shadow", Events: 2, Period: time.Hour, Algorithm: tidegate.FixedWindow}),
			Cost: 1, Advisory: true,
		}
		var (
			all      sync.WaitGroup
			ok, over [4]bool
		)
		for i := range ok {
			all.Go(func() {
				checks := []tidegate.Check{check, shadow}
				d, err := s.Take(t.Context(), checks, 1)
				if err != nil {
					t.Error(err)
				}
				ok[i], over[i] = d.OK, d.OK && checks[1].Over
			})
			synctest.Wait()
		}
		all.Wait()
		if ok != [4]bool{true, false, true, true} || over != [4]bool{false, false, true, true} {
			t.Errorf("admitted %t, over %t; want the shadow to be over for the last two, of which one has the place of the second", ok, over)
		}
	})
}
