package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/store/memory"
)

var (
	leaky  = tidegate.MustLimit(tidegate.Spec{Name: "leaky", Events: 10, Period: time.Second, Burst: 100, Algorithm: tidegate.LeakyBucket})
	logged = tidegate.MustLimit(tidegate.Spec{
		Name: "log", Events: 2, Period: time.Second, Algorithm: tidegate.SlidingLog,
		Terms: &tidegate.Terms{Handling: tidegate.Handling{Queue: &tidegate.Queue{Places: 10, MaxWait: 6 * time.Second}}},
	})
)

// crowd sends requests that wait, and notes who left when.
type crowd struct {
	store tidegate.Store
	start time.Time

	sync.WaitGroup
	mu   sync.Mutex
	left []departure
}

type departure struct {
	who     int
	after   time.Duration
	refused bool
	err     error
}

func (c *crowd) send(ctx context.Context, who int, check tidegate.Check) {
	c.Go(func() {
		d, err := c.store.Take(ctx, []tidegate.Check{check}, 1)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.left = append(c.left, departure{who, time.Since(c.start), err == nil && !d.OK, err})
	})
	synctest.Wait() // the next comes after it
}

func (c *crowd) want(t *testing.T, want ...departure) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	// Of two who leave at one instant, either may note it first.
	slices.SortStableFunc(c.left, func(a, b departure) int { return cmp.Or(cmp.Compare(a.after, b.after), cmp.Compare(a.who, b.who)) })
	if !slices.EqualFunc(c.left, want, func(a, b departure) bool {
		return a.who == b.who && (a.after-b.after).Abs() < time.Millisecond && a.refused == b.refused && (a.err == nil) == (b.err == nil)
	}) {
		t.Errorf("\n got %v\nwant %v", c.left, want)
	}
}

const ms = time.Millisecond

func TestBucketLeavesOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := crowd{store: New(chain.Adapt(memory.New())), start: time.Now()}
		for i := range 4 {
			c.send(t.Context(), i, tidegate.Check{Key: "k", Limit: leaky, Cost: 1, MaxWait: time.Minute})
		}
		c.Wait()
		c.want(t, departure{who: 0}, departure{who: 1, after: 100 * ms}, departure{who: 2, after: 200 * ms}, departure{who: 3, after: 300 * ms})
	})
}

// A waiter that leaves the queue frees a turn: those behind move up, the outflow stays
// constant, and the end of the queue is given back.
func TestWhoLeavesLetsOthersMoveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := crowd{store: New(chain.Adapt(memory.New())), start: time.Now()}
		check := tidegate.Check{Key: "k", Limit: leaky, Cost: 1, MaxWait: time.Minute}
		c.send(t.Context(), 0, check)
		ctx, leave := context.WithCancel(t.Context())
		c.send(ctx, 1, check)
		c.send(t.Context(), 2, check)
		c.send(t.Context(), 3, check)
		time.Sleep(50 * ms)
		leave()
		synctest.Wait()
		c.send(t.Context(), 4, check) // gets the turn that was given back
		c.Wait()
		c.want(t, departure{who: 0}, departure{who: 1, after: 50 * ms, err: context.Canceled},
			departure{who: 2, after: 100 * ms}, departure{who: 3, after: 200 * ms}, departure{who: 4, after: 300 * ms})
	})
}

// A turn for three is not given to one for one: it could not be told apart from
// jumping the queue.
func TestTurnsOfOtherCostsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := crowd{store: New(chain.Adapt(memory.New())), start: time.Now()}
		one := tidegate.Check{Key: "k", Limit: leaky, Cost: 1, MaxWait: time.Minute}
		three := one
		three.Cost = 3
		c.send(t.Context(), 0, one)
		ctx, leave := context.WithCancel(t.Context())
		c.send(ctx, 1, one)
		c.send(t.Context(), 2, three)
		c.send(t.Context(), 3, one)
		before := len(c.left)
		leave()
		c.Wait()
		if before != 1 || len(c.left) != 4 {
			t.Fatalf("%d left before, %d in all", before, len(c.left))
		}
		if c.left[2].who != 2 || c.left[3].who != 3 {
			t.Errorf("out of order: %v", c.left)
		}
	})
}

func TestOtherLimitsAreAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := crowd{store: New(chain.Adapt(memory.New())), start: time.Now()}
		check := tidegate.Check{Key: "k", Limit: logged, Cost: 1}
		for i := range 5 {
			c.send(t.Context(), i, check)
		}
		time.Sleep(500 * ms)
		c.send(t.Context(), 5, check) // comes late, and does not jump the queue
		c.Wait()
		c.want(t, departure{who: 0}, departure{who: 1},
			departure{who: 2, after: time.Second}, departure{who: 3, after: time.Second},
			departure{who: 4, after: 2 * time.Second}, departure{who: 5, after: 2 * time.Second})
	})
}

func TestLineIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(chain.Adapt(memory.New()))
		c := crowd{store: s, start: time.Now()}
		check := tidegate.Check{Key: "k", Limit: logged, Cost: 1}
		for i := range 13 { // two pass, ten wait, one finds no place
			c.send(t.Context(), i, check)
		}
		if s.Waiting() != 10 {
			t.Errorf("%d wait, want 10", s.Waiting())
		}
		c.want(t, departure{who: 0}, departure{who: 1}, departure{who: 12, refused: true})
		c.Wait()
		if got := len(c.left); got != 13 {
			t.Errorf("%d left, want 13", got)
		}
		refused := 0
		for _, d := range c.left {
			if d.refused {
				refused++
			}
			if d.after > 6*time.Second {
				t.Errorf("%d waited %s: longer than max_wait", d.who, d.after)
			}
		}
		if refused != 1 {
			t.Errorf("%d refused, want 1: ten leave within six seconds", refused)
		}
		if s.Waiting() != 0 || len(s.retries.byID) != 0 {
			t.Errorf("%d wait in %d queues at the end", s.Waiting(), len(s.retries.byID))
		}
	})
}

func TestFirstInLineLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := crowd{store: New(chain.Adapt(memory.New())), start: time.Now()}
		check := tidegate.Check{Key: "k", Limit: logged, Cost: 1}
		c.send(t.Context(), 0, check)
		c.send(t.Context(), 1, check)
		ctx, leave := context.WithCancel(t.Context())
		c.send(ctx, 2, check)
		c.send(t.Context(), 3, check)
		leave()
		synctest.Wait()
		c.Wait()
		c.want(t, departure{who: 0}, departure{who: 1}, departure{who: 2, err: context.Canceled}, departure{who: 3, after: time.Second})
	})
}

// A slot that is given back goes to who waits longest.
func TestWaitsForASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(chain.Adapt(memory.New()))
		slots := tidegate.MustLimit(tidegate.Spec{Name: "slots", Events: 1, Period: time.Minute, Algorithm: tidegate.Concurrency, Terms: logged.Terms})
		check := tidegate.Check{Key: "k", Limit: slots, Cost: 1}
		d, err := s.Take(t.Context(), []tidegate.Check{check}, 1)
		if err != nil || !d.OK {
			t.Fatal(d, err)
		}
		c := crowd{store: s, start: time.Now()}
		c.send(t.Context(), 1, check)
		c.send(t.Context(), 2, check)
		time.Sleep(time.Second)
		back := check
		back.Cost = -1
		if err := s.Adjust(t.Context(), d.Receipt, []tidegate.Check{back}); err != nil {
			t.Fatal(err)
		}
		c.Wait()
		if len(c.left) != 2 || c.left[0].who != 1 || c.left[0].refused || c.left[0].after > time.Second+slotEvery || !c.left[1].refused {
			t.Errorf("got %v, want 1 to go as soon as there is a slot, and 2 to be refused in the end", c.left)
		}
	})
}

// Refused at once: the wait would pass the deadline, or the limit's max_wait.
func TestNoWaitThatCannotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := crowd{store: New(chain.Adapt(memory.New())), start: time.Now()}
		check := tidegate.Check{Key: "k", Limit: logged, Cost: 1}
		c.send(t.Context(), 0, check)
		c.send(t.Context(), 1, check)
		ctx, cancel := context.WithTimeout(t.Context(), 900*ms)
		defer cancel()
		c.send(ctx, 2, check)
		slow := tidegate.MustLimit(tidegate.Spec{Name: "slow", Events: 1, Period: time.Minute, Terms: logged.Terms})
		c.send(t.Context(), 3, tidegate.Check{Key: "k", Limit: slow, Cost: 1})
		c.send(t.Context(), 4, tidegate.Check{Key: "k", Limit: slow, Cost: 1})
		c.Wait()
		c.want(t, departure{who: 0}, departure{who: 1}, departure{who: 2, refused: true}, departure{who: 3}, departure{who: 4, refused: true})
	})
}

// Thousands wait over several keys, half of them leave: who stays leaves in order
// and at a constant pace, and nothing is left behind.
func TestThousandsOfWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(chain.Adapt(memory.New()))
		const keys, each = 10, 100
		var crowds [keys]crowd
		var leaves []context.CancelFunc
		for k := range keys {
			crowds[k].store, crowds[k].start = s, time.Now()
			for i := range each {
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				if i%2 == 1 {
					leaves = append(leaves, leave)
				}
				crowds[k].send(ctx, i, tidegate.Check{Key: fmt.Sprint(k), Limit: leaky, Cost: 1, MaxWait: time.Minute})
			}
		}
		for _, leave := range leaves {
			leave()
		}
		for k := range crowds {
			crowds[k].Wait()
			n := 0
			for _, d := range crowds[k].left {
				if d.err != nil {
					continue
				}
				if want := time.Duration(n) * 100 * ms; d.who != 2*n || (d.after-want).Abs() > ms {
					t.Fatalf("key %d: number %d to leave is %d after %s, want %d after %s", k, n, d.who, d.after, 2*n, want)
				}
				n++
			}
			if n != each/2 {
				t.Errorf("key %d: %d left, want %d", k, n, each/2)
			}
		}
		if s.Waiting() != 0 || len(s.turns.byID) != 0 {
			t.Errorf("%d wait in %d queues at the end", s.Waiting(), len(s.turns.byID))
		}
	})
}

// Whoever is refused where the limit of the queue counted before a change of the rules waits
// in the queue all the same.
func TestLineOfALimitThatCountedElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := tidegate.MustLimit(tidegate.Spec{
			Name: "log", Events: 2, Period: time.Second, Algorithm: tidegate.FixedWindow,
			Terms: &tidegate.Terms{Handling: tidegate.Handling{Successor: logged}},
		})
		blocks := tidegate.MustLimit(tidegate.Spec{
			Name: "log", Scope: "#block", Events: 1, Period: time.Second,
			Terms: &tidegate.Terms{Role: tidegate.Blocks, Answer: tidegate.Answer{Nominal: logged}},
		})
		store := New(chain.Adapt(memory.New()))
		take := func(key string, beside *tidegate.Limit) (tidegate.Decision, time.Duration) {
			start := time.Now()
			d, err := store.Take(t.Context(), []tidegate.Check{{Key: key, Limit: logged, Cost: 1}, {Key: key, Limit: beside, Cost: 1}}, 1)
			if err != nil {
				t.Fatal(err)
			}
			return d, time.Since(start)
		}
		if _, err := store.Take(t.Context(), []tidegate.Check{{Key: "ann", Limit: before, Cost: 1}, {Key: "bob", Limit: blocks, Cost: 1}}, 2); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
		if d, waited := take("bob", blocks); d.OK || waited != 0 {
			t.Errorf("blocked, and waited %s: %+v", waited, d)
		}
		take("ann", before)
		if d, waited := take("ann", before); !d.OK || waited == 0 || waited > time.Second {
			t.Errorf("waited %s: %+v", waited, d)
		}
	})
}

// Who may take more does not wait in the queue behind who has to leave some.
func TestLinesOfFloors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := tidegate.MustLimit(tidegate.Spec{
			Name: "floors", Events: 4, Period: time.Second, Algorithm: tidegate.FixedWindow,
			Terms: &tidegate.Terms{Handling: tidegate.Handling{Queue: &tidegate.Queue{Places: 10, MaxWait: 6 * time.Second}}},
		})
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
		c := crowd{store: New(chain.Adapt(memory.New())), start: time.Now()}
		low, high := tidegate.Check{Key: "k", Limit: limit, Cost: 1, Floor: 3}, tidegate.Check{Key: "k", Limit: limit, Cost: 1}
		for who, check := range []tidegate.Check{low, low, low, high, high, high} {
			c.send(t.Context(), who, check)
		}
		c.Wait()
		c.want(t, departure{who: 0}, departure{who: 3}, departure{who: 4}, departure{who: 5},
			departure{who: 1, after: time.Second}, departure{who: 2, after: 2 * time.Second})
	})
}

// A limit that was raised, for a tier or by an override, does not wait in the queue behind requests
// that came under the lower one.
func TestLinesOfLimits(t *testing.T) {
	for _, a := range []tidegate.Algorithm{tidegate.FixedWindow, tidegate.SlidingLog, tidegate.SlidingWindow, tidegate.SubWindows, tidegate.Concurrency} {
		t.Run(a.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limit := func(events int64) *tidegate.Limit {
					return tidegate.MustLimit(tidegate.Spec{
						Name: "raised", Events: events, Period: 5 * time.Second, Algorithm: a,
						Terms: &tidegate.Terms{Handling: tidegate.Handling{Queue: &tidegate.Queue{Places: 10, MaxWait: 12 * time.Second}}},
					})
				}
				time.Sleep(time.Until(time.Now().Truncate(5 * time.Second).Add(5 * time.Second)))
				c := crowd{store: New(chain.Adapt(memory.New())), start: time.Now()}
				low, high := tidegate.Check{Key: "k", Limit: limit(1), Cost: 1}, tidegate.Check{Key: "k", Limit: limit(4), Cost: 1}
				ctx, cancel := context.WithCancel(t.Context())
				c.send(ctx, 0, low)
				c.send(ctx, 1, low) // waits
				for who := range 3 {
					c.send(ctx, 2+who, high)
				}
				c.want(t, departure{who: 0}, departure{who: 2}, departure{who: 3}, departure{who: 4})
				cancel()
				c.Wait()
			})
		})
	}
}

// A request that leaves the queue of a bucket frees the slots that it was given with its turn.
func TestWhoLeavesFreesSlots(t *testing.T) {
	for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.LeakyBucket} {
		for _, buckets := range []int{1, 2} {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New()
				slots := tidegate.Slots(2, time.Hour)
				checks := []tidegate.Check{{Key: "k", Limit: slots, Cost: 1}}
				for i := range buckets {
					l := tidegate.MustLimit(tidegate.Spec{Name: fmt.Sprint(i), Events: 1, Period: time.Minute, Burst: 20, Algorithm: a})
					checks = append(checks, tidegate.Check{Key: "k", Limit: l, Cost: 1, MaxWait: time.Hour})
				}
				s := New(chain.Adapt(store))
				for used := range checks[1:] { // up to the last that passes at once
					full := checks[1+used]
					full.Cost = map[tidegate.Algorithm]int64{tidegate.TokenBucket: 19}[a]
					if d, err := s.Take(t.Context(), []tidegate.Check{full}, 1); !d.OK || err != nil {
						t.Fatalf("%+v, %v", d, err)
					}
				}
				if d, err := s.Take(t.Context(), slices.Clone(checks), 1); !d.OK || err != nil {
					t.Fatalf("%+v, %v", d, err)
				}
				for range 5 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					if d, err := s.Take(ctx, slices.Clone(checks), 1); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%s: %+v, %v", a, d, err)
					}
					cancel()
				}
				if d := tidegate.New(store, slots).Peek(t.Context(), "k"); d.Remaining != 1 {
					t.Errorf("%s, %d buckets: %d of 2 slots are free, and one is held", a, buckets, d.Remaining)
				}
			})
		}
	}
}

// A request of two queues waits in both: those that wait are counted, and where one queue is of a
// bucket, those behind who leaves move up.
func TestTwoQueues(t *testing.T) {
	other := tidegate.MustLimit(tidegate.Spec{Name: "other", Events: 10, Period: time.Second, Burst: 100, Algorithm: tidegate.LeakyBucket})
	wide := func(a tidegate.Algorithm) *tidegate.Limit {
		return tidegate.MustLimit(tidegate.Spec{
			Name: "wide", Events: 1000, Period: time.Hour, Algorithm: a,
			Terms: &tidegate.Terms{Handling: tidegate.Handling{Queue: &tidegate.Queue{Places: 10, MaxWait: time.Minute}}},
		})
	}
	f := func(second tidegate.Check, last time.Duration) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			s := New(chain.Adapt(memory.New()))
			checks := []tidegate.Check{{Key: "k", Limit: leaky, Cost: 1, MaxWait: time.Minute}, second}
			leaving, leave := context.WithCancel(t.Context())
			start := time.Now()
			left := make([]time.Duration, 4)
			var all sync.WaitGroup
			for i := range left {
				all.Go(func() {
					ctx, noted := t.Context(), time.Duration(0)
					if i == 2 {
						ctx = leaving
					}
					d, err := s.Take(context.WithValue(ctx, Waited{}, &noted), slices.Clone(checks), 1)
					left[i] = time.Since(start)
					if i != 2 && (err != nil || !d.OK || d.Wait != 0 || d.Queued != (i > 0) || noted != left[i]) {
						t.Errorf("%s: number %d: %+v, %v, noted %s after %s", second.Limit.Name, i, d, err, noted, left[i])
					}
				})
				synctest.Wait()
			}
			if n := s.Waiting(); n != 3 {
				t.Errorf("%s: %d wait, want 3", second.Limit.Name, n)
			}
			leave()
			all.Wait()
			if left[1] != 100*ms || left[2] != 0 || left[3] != last {
				t.Errorf("%s: they leave after %s, want 0s, 100ms, 0s, %s", second.Limit.Name, left, last)
			}
		})
	}
	for _, a := range []tidegate.Algorithm{tidegate.SlidingLog, tidegate.FixedWindow, tidegate.SlidingWindow} {
		f(tidegate.Check{Key: "k", Limit: wide(a), Cost: 1}, 200*ms)
	}
	// Of two that are booked nobody can tell whose turn it is: the gap stays.
	f(tidegate.Check{Key: "k", Limit: other, Cost: 1, MaxWait: time.Minute}, 300*ms)
}

// A request that finds the queue full is refused by its limit, also while the first waiter asks for the first time.
func TestFullQueueNamesItsLimit(t *testing.T) {
	for _, refused := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := New(chain.Adapt(memory.New()))
			limit := tidegate.MustLimit(tidegate.Spec{
				Name: "log", Events: 2, Period: time.Second, Algorithm: tidegate.SlidingLog,
				Terms: &tidegate.Terms{Handling: tidegate.Handling{Queue: &tidegate.Queue{Places: 1, MaxWait: 6 * time.Second}}},
			})
			check := tidegate.Check{Key: "k", Limit: limit, Cost: 1}
			id := queueOf(&check)
			id.capacity = limit.Capacity()
			var first *tidegate.Decision // nil if the queue that it found has ended meanwhile
			if refused {
				first = &tidegate.Decision{Limit: limit, RetryAfter: time.Second}
			}
			if _, full := s.retries.join(id, limit.Terms.Handling.Queue, first); full {
				t.Fatal("an empty queue is full")
			}
			d, err := s.Take(t.Context(), []tidegate.Check{check}, 1)
			if err != nil || d.OK || d.Limit != limit || d.RetryAfter != time.Second {
				t.Errorf("the first was refused %t: %+v, %v; want a refusal by %s", refused, d, err, limit)
			}
		})
	}
}
