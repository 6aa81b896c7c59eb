package node

import (
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
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
	"tidegate.dev/tidegate/store/redis"
)

// atOnce is a memory store that decides about several checks in one call, and notes how
// many they were.
type atOnce struct {
	*memory.Store
	most int
	hold chan struct{} // calls wait for it; nil means they do not
	err  error         // that all of them end with

	mu    sync.Mutex
	sizes []int
}

func (a *atOnce) MaxBatch() int { return a.most }

func (a *atOnce) TakeBatch(ctx context.Context, asks []chain.Ask) error {
	a.note(len(asks))
	for i := range asks {
		k := &asks[i]
		if k.Copies < 1 || k.Checks[0].Key == "panic" {
			panic("asked for nothing")
		}
		k.Granted, k.Err = a.Store.Take(ctx, k.Checks, k.Copies)
	}
	return a.err
}

func (a *atOnce) note(n int) {
	a.mu.Lock()
	a.sizes = append(a.sizes, n)
	a.mu.Unlock()
	if a.hold != nil {
		<-a.hold
	}
}

func (a *atOnce) calls() []int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.sizes)
}

var twice = tidegate.MustLimit(tidegate.Spec{Name: "twice", Scope: "user", Events: 2, Period: time.Hour, Algorithm: tidegate.TokenBucket, Terms: &tidegate.Terms{Handling: tidegate.Handling{OnStoreFailure: tidegate.FailOpen}}})

func takeOne(ctx context.Context, s *Node, key string) (tidegate.Decision, error) {
	d, err := s.Take(ctx, []tidegate.Check{{Key: key, Limit: twice, Cost: 1}}, 1)
	if err == nil && d.Err != nil {
		err = d.Err // a fallback has decided, which is open here
	}
	return d, err
}

// parked has calls wait until the test sends them: no worker takes them on its own.
func parked(s *Node) *Node {
	s.server(0).batches.state.sending = true
	return s
}

// Calls that are ready go in one call, as many as the inner store takes at once.
func TestBatchTakesWhoIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &atOnce{Store: memory.New(), most: 4}
		s := parked(open(t, inner, Options{Deadline: patient}))
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				left := int64(1)
				if i == 3 { // of which there are two
					left = 0
				}
				if d, err := takeOne(t.Context(), s, fmt.Sprint(i)); err != nil || !d.OK || d.Granted != 1 || d.Remaining != left {
					t.Errorf("key %d: %+v, %v", i, d, err)
				}
			})
		}
		// The same as one of them, which has not been asked for yet: it goes with that.
		synctest.Wait()
		all.Go(func() {
			if d, err := takeOne(t.Context(), s, "3"); err != nil || !d.OK || d.Remaining != 0 {
				t.Errorf("again: %+v, %v", d, err)
			}
		})
		synctest.Wait()
		s.server(0).batches.work()
		all.Wait()
		sum := 0
		for _, n := range inner.calls() {
			if sum += n; n > inner.most {
				t.Errorf("%d at once", n)
			}
		}
		if got := inner.calls(); sum != 10 || len(got) > 4 || s.Health().Calls != int64(len(got)) {
			t.Errorf("10 were asked for in calls of %v, counted %d", got, s.Health().Calls)
		}
		synctest.Wait()
		if n := s.Health().InFlight; n != 0 {
			t.Errorf("%d are still in flight", n)
		}
	})
}

// For whoever left before the call nothing is asked.
func TestBatchWithoutThoseWhoLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &atOnce{Store: memory.New(), most: 4}
		s := parked(open(t, inner, Options{Deadline: patient}))
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range 3 {
			all.Go(func() {
				with := ctx
				if i == 2 {
					with = t.Context()
				}
				if _, err := takeOne(with, s, fmt.Sprint(i)); (err != nil) != (i < 2) || err != nil && !errors.Is(err, context.Canceled) {
					t.Errorf("key %d: %v", i, err)
				}
			})
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		s.server(0).batches.work()
		all.Wait()
		if got := inner.calls(); !slices.Equal(got, []int{1}) {
			t.Errorf("one was left, asked for in calls of %v", got)
		}
	})
}

// A request that comes while two calls are out waits for one of them to come back, unless
// there are enough for a call.
func TestBatchesWhileCallsAreOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &atOnce{Store: memory.New(), most: 4, hold: make(chan struct{})}
		s := open(t, inner, Options{Deadline: patient})
		var all sync.WaitGroup
		came := 0
		come := func(n int, want ...int) {
			t.Helper()
			for range n {
				key := fmt.Sprint(came)
				came++
				all.Go(func() {
					if d, err := takeOne(t.Context(), s, key); err != nil || !d.OK {
						t.Errorf("key %s: %+v, %v", key, d, err)
					}
				})
				synctest.Wait()
			}
			if got := inner.calls(); !slices.Equal(got, want) {
				t.Errorf("%d came one by one: calls of %v, want %v", came, got, want)
			}
		}
		come(1, 1)
		come(1, 1, 1)
		come(3, 1, 1)
		come(1, 1, 1, 4)
		come(2, 1, 1, 4)
		inner.hold <- struct{}{} // one comes back, and there are still two
		synctest.Wait()
		come(0, 1, 1, 4)
		inner.hold <- struct{}{}
		synctest.Wait()
		come(0, 1, 1, 4, 2)
		close(inner.hold)
		all.Wait()
	})
}

// Calls that are slow, or never come back, hold up nobody for long.
func TestBatchesWhileCallsAreSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &atOnce{Store: memory.New(), most: 4, hold: make(chan struct{})}
		s := open(t, inner, Options{Deadline: 80 * time.Millisecond})
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() {
				if i < 2 {
					_, _ = takeOne(t.Context(), s, fmt.Sprint(i))
					return
				}
				if d, err := takeOne(t.Context(), s, fmt.Sprint(i)); err != nil || !d.OK {
					t.Errorf("key %d: %+v, %v", i, d, err)
				}
			})
			synctest.Wait()
		}
		if got := inner.calls(); !slices.Equal(got, []int{1, 1}) {
			t.Errorf("calls of %v while two are under way, want these", got)
		}
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		if got := inner.calls(); !slices.Equal(got, []int{1, 1, 3}) {
			t.Errorf("calls of %v after an eighth of the deadline, want one more, of 3", got)
		}
		close(inner.hold)
		all.Wait()
	})
}

// A batch that fails, or brings the inner store down, is an error to all in it.
func TestBatchThatFails(t *testing.T) {
	f := func(inner *atOnce, key string, want string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			inner.Store, inner.most = memory.New(), 4
			s := parked(newNode(inner, Options{Deadline: patient}))
			defer s.Close()
			var all sync.WaitGroup
			for _, key := range []string{"a", key} {
				all.Go(func() {
					if _, err := takeOne(t.Context(), s, key); err == nil || err.Error() != want {
						t.Errorf("key %s: %v, want %s", key, err, want)
					}
				})
			}
			synctest.Wait()
			s.server(0).batches.work()
			all.Wait()
		})
	}
	f(&atOnce{err: errors.New("no")}, "b", "no")
	f(&atOnce{}, "panic", "the store panicked: asked for nothing")
}

// A call that its reply did not answer for all counts in the window until that reply, and no more: neither when it is sent again,
// nor if that takes so long that it is overdue before.
func TestWindowWithoutCallsThatAreSentAgain(t *testing.T) {
	f := func(until time.Duration) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			s := parked(open(t, &atOnce{Store: memory.New(), most: 4}, Options{Deadline: 80 * time.Millisecond, Failures: 1000}))
			var all sync.WaitGroup
			for range 2 {
				all.Go(func() { _, _ = takeOne(t.Context(), s, "k") })
			}
			synctest.Wait()
			q, b := &s.server(0).batches, new(batch)
			q.take(b)
			c := b.calls[0]
			copies := s.send(c, s.stamp(), 0)
			reply := chain.Ask{Checks: c.stream.checks, Copies: copies, Granted: tidegate.Decision{OK: true, Granted: 1, Limit: twice}}
			rest, _, overdue := s.deliver(c, &reply, nil)
			if copies != 2 || rest != c || overdue {
				t.Fatalf("asked for %d, again for %t, overdue %t", copies, rest != nil, overdue)
			}
			time.Sleep(until)
			synctest.Wait()
			q.step(batchEvent{kind: batchReplied, now: s.now(), n: 1})
			rest.run()
			all.Wait()
			if q.state.calls != 0 || q.state.out != 0 || s.server(0).inFlight.Load() != 0 || s.server(0).overdue.Load() != 0 {
				t.Errorf("sent again after %s: %+v, want no calls", until, q.state)
			}
		})
	}
	f(0)
	f(5 * time.Second)
}

// On Redis, callers of many keys share calls, and every key gets what is due to it.
func TestBatchesOnRedis(t *testing.T) {
	inner, err := redis.Open(redis.Config{Addrs: []string{testdep.Redis(t).Socket}, Deadline: patient})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = inner.Close() })
	s := open(t, inner, Options{Deadline: patient, DenyEntries: -1})
	const keys, callers, times, events = 40, 80, 50, 70
	l := tidegate.MustLimit(tidegate.Spec{Name: "some", Scope: "user", Events: events, Period: 24 * time.Hour, Algorithm: tidegate.TokenBucket})
	var mu sync.Mutex
	admitted := map[string]int{}
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for range times {
				key := fmt.Sprint(i % keys)
				d, err := s.Take(t.Context(), []tidegate.Check{{Key: key, Limit: l, Cost: 1}}, 1)
				if err != nil {
					t.Error(err)
					return
				}
				if d.OK {
					mu.Lock()
					admitted[key]++
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	for key, n := range admitted {
		if n != events {
			t.Errorf("key %s: %d admitted, want %d", key, n, events)
		}
	}
	if len(admitted) != keys {
		t.Errorf("%d keys, want %d", len(admitted), keys)
	}
	if stats := s.Health(); stats.Calls >= stats.Asked/2 {
		t.Errorf("%d calls for %d requests: they did not go together", stats.Calls, stats.Asked)
	}
}
