package node

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
)

var hundred = tidegate.Check{Key: "ann", Limit: per(100, time.Hour, tidegate.TokenBucket), Cost: 1}

// with opens a Store around a slow one, which may be wrapped, in a bubble of its own time.
func with(t *testing.T, wrap func(*slow) tidegate.Store, o Options, f func(t *testing.T, c *crowd, inner *slow)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		inner := newSlow()
		o.Default = tidegate.FailOpen
		s := newNode(wrap(inner), forFew(o))
		defer s.Close()
		c := &crowd{store: s}
		f(t, c, inner)
		c.Wait()
		synctest.Wait()
		if got := s.server(0).inFlight.Load(); got != 0 {
			t.Errorf("%d calls have not come back", got)
		}
		for i := range s.shards {
			if sh := &s.shards[i]; len(sh.streams) != 0 || sh.first != nil {
				t.Errorf("%d streams are still listed", len(sh.streams))
			}
		}
	})
}

func plain(s *slow) tidegate.Store { return s }

func tellsRest(s *slow) tidegate.Store { return slowShort{s} }

// The first request is sent at once; those that come meanwhile share a call.
func TestTogether(t *testing.T) {
	with(t, plain, Options{}, func(t *testing.T, c *crowd, inner *slow) {
		for range 2 {
			c.come(1, hundred)
			for range 9 {
				c.come(1, hundred)
			}
			c.Wait()
			inner.wantCalls(t, 1, 9)
		}
		if got := c.granted(); got != 20 || inner.left(t, hundred) != 80 {
			t.Errorf("%d granted of 20, and %d left of 100", got, inner.left(t, hundred))
		}
		for i, who := range c.told {
			want := 2 * trip
			if i%10 == 0 {
				want = trip
			}
			if who.after != want || who.err != nil || who.d.Limit != hundred.Limit {
				t.Errorf("%d was told %+v, %v after %s, want that after %s", i, who.d, who.err, who.after, want)
			}
		}
		if got := c.store.(*Node).Health().Counts; got != (Counts{Asked: 20, Calls: 4, Shared: 18, Answered: 20}) {
			t.Errorf("%+v", got)
		}
	})
}

// Only requests for the same share a call.
func TestDifferentVectors(t *testing.T) {
	with(t, plain, Options{}, func(t *testing.T, c *crowd, inner *slow) {
		other, cost, limit, estimate := hundred, hundred, hundred, hundred
		other.Key = "bob"
		cost.Cost = 2
		limit.Limit = per(100, time.Hour, tidegate.TokenBucket)
		estimate.Estimate = true
		all := [][]tidegate.Check{{hundred}, {other}, {cost}, {limit}, {estimate}, {hundred, other}, {other, hundred}}
		for range 2 {
			for _, checks := range all {
				c.come(1, checks...)
			}
		}
		c.Wait()
		inner.wantCalls(t, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)
	})
}

// What has to be answered one by one is asked for one by one, at once.
func TestNeverTogether(t *testing.T) {
	f := func(name string, change func(*tidegate.Check), spec tidegate.Spec) {
		t.Run(name, func(t *testing.T) {
			with(t, plain, Options{}, func(t *testing.T, c *crowd, inner *slow) {
				spec.Events = 100
				if spec.Period = time.Hour; spec.Algorithm == 0 {
					spec.Algorithm = tidegate.TokenBucket
				}
				odd := tidegate.Check{Key: "ann", Limit: tidegate.MustLimit(spec), Cost: 1}
				change(&odd)
				for range 3 {
					c.come(1, hundred, odd)
				}
				c.Wait()
				inner.wantCalls(t, 1, 1, 1)
				for i, who := range c.told {
					if who.after != trip || who.err != nil {
						t.Errorf("%d was told %+v, %v after %s", i, who.d, who.err, who.after)
					}
				}
			})
		})
	}
	none := func(*tidegate.Check) {}
	f("concurrency", none, tidegate.Spec{Algorithm: tidegate.Concurrency})
	f("advisory", func(c *tidegate.Check) { c.Advisory = true }, tidegate.Spec{})
	f("booked ahead", func(c *tidegate.Check) { c.MaxWait = time.Second }, tidegate.Spec{Name: "booked"})
	f("count_rejected", none, tidegate.Spec{Algorithm: tidegate.SlidingLog, CountRejected: true})
	f("switched off", none, tidegate.Spec{Name: "off", Terms: &tidegate.Terms{Handling: tidegate.Handling{NoCoalesce: true}}})
}

// A request for several copies has a call of its own: they are together already.
func TestCopiesGoAlone(t *testing.T) {
	with(t, tellsRest, Options{}, func(t *testing.T, c *crowd, inner *slow) {
		c.come(1, hundred)
		for range 2 {
			c.come(3, hundred)
		}
		c.come(1, hundred)
		c.Wait()
		inner.wantCalls(t, 1, 3, 3, 1)
		if got := c.granted(); got != 8 || inner.left(t, hundred) != 92 {
			t.Errorf("%d granted of 8, and %d left of 100", got, inner.left(t, hundred))
		}
	})
}

func TestPeeksGoAlone(t *testing.T) {
	with(t, plain, Options{}, func(t *testing.T, c *crowd, inner *slow) {
		peek := hundred
		peek.Cost = 0
		for range 3 {
			c.come(1, peek)
		}
		c.Wait()
		inner.wantCalls(t, 1, 1, 1)
	})
}

// When there is not enough for all, those who came first get it, and the others are told
// when there will be more: at once if the inner store says so, or when they asked again.
func TestShortGrant(t *testing.T) {
	five := tidegate.Check{Key: "ann", Limit: per(5, time.Hour, tidegate.TokenBucket), Cost: 1}
	f := func(t *testing.T, wrap func(*slow) tidegate.Store, want ...int) {
		with(t, wrap, Options{DenyEntries: -1}, func(t *testing.T, c *crowd, inner *slow) {
			for range 10 {
				c.come(1, five)
			}
			c.Wait()
			inner.wantCalls(t, want...)
			for i, who := range c.told {
				if who.err != nil || who.d.OK != (i < 5) || who.d.Limit != five.Limit {
					t.Errorf("%d was told %+v, %v", i, who.d, who.err)
				}
				// The first was charged at half a trip, and five are an hour.
				back := 12*time.Minute - trip
				if who.after > 2*trip {
					back -= trip
				}
				if !who.d.OK && (who.d.RetryAfter != back || who.d.Remaining != 0) {
					t.Errorf("%d was told to come back in %s, want %s", i, who.d.RetryAfter, back)
				}
			}
		})
	}
	t.Run("told", func(t *testing.T) { f(t, tellsRest, 1, 9) })
	t.Run("asks again", func(t *testing.T) { f(t, plain, 1, 9, 5) })
}

// Copies are granted as far as they go: a request for several may get some.
func TestShareOfCopies(t *testing.T) {
	five := tidegate.Check{Key: "ann", Limit: per(5, time.Hour, tidegate.TokenBucket), Cost: 1}
	with(t, tellsRest, Options{}, func(t *testing.T, c *crowd, inner *slow) {
		for _, n := range []int{1, 3, 3, 3} {
			c.come(n, five)
			c.Wait()
		}
		for i, want := range []int64{1, 3, 1, 0} {
			if got := c.told[i].d; got.Granted != want || got.OK != (want > 0) {
				t.Errorf("%d was granted %+v, want %d", i, got, want)
			}
		}
	})
}

// A layer above can tell that nothing was charged, without knowing this package.
func TestErrBusySaysSo(t *testing.T) {
	var b interface{ Busy() bool }
	if !errors.As(fmt.Errorf("wrapped: %w", ErrBusy), &b) || !b.Busy() {
		t.Error("ErrBusy does not say that it is busy")
	}
}
