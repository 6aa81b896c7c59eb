package queue

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/store/memory"
)

// A request that waits for its turn longer than the lease of its slot keeps the slot, until it
// leaves the queue.
func TestSlotsOfWhoWaits(t *testing.T) {
	f := func(what string, turn tidegate.Check, before int) {
		t.Helper()
		for _, leaves := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New()
				s := New(chain.Adapt(store))
				slots := tidegate.Slots(10, time.Second)
				free := func() int64 { return tidegate.New(store, slots).Peek(t.Context(), "k").Remaining }
				for range before {
					go func() { _, _ = s.Take(t.Context(), []tidegate.Check{{Key: "other", Limit: slots, Cost: 1}, turn}, 1) }()
					synctest.Wait()
				}
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				var done atomic.Bool
				go func() {
					_, _ = s.Take(ctx, []tidegate.Check{{Key: "k", Limit: slots, Cost: 1}, turn}, 1)
					done.Store(true)
				}()
				for range 49 {
					synctest.Wait()
					if n := free(); n != 9 || done.Load() {
						t.Fatalf("%s: %d of 10 slots are free while one waits; its turn has come is %t", what, n, done.Load())
					}
					time.Sleep(100 * ms)
				}
				if leaves {
					leave()
					synctest.Wait()
					if n := free(); n != 10 {
						t.Errorf("%s: %d of 10 slots are free when it has left", what, n)
					}
				}
				time.Sleep(200 * ms) // its turn comes
				synctest.Wait()
				if want := map[bool]int64{false: 9, true: 10}[leaves]; !done.Load() || free() != want {
					t.Errorf("%s: %d of 10 slots are free at its turn, which has come is %t", what, free(), done.Load())
				}
				time.Sleep(2 * time.Second)
				if n := free(); n != 10 {
					t.Errorf("%s: %d of 10 slots are free when nobody renews them any more", what, n)
				}
			})
		}
	}
	for _, a := range []tidegate.Algorithm{tidegate.LeakyBucket, tidegate.TokenBucket} {
		spec := tidegate.Spec{Name: "turns", Events: 1, Period: 5 * time.Second, Algorithm: a, Burst: 1}
		if a == tidegate.LeakyBucket {
			spec.Burst = 5
		}
		f(a.String(), tidegate.Check{Key: "k", Limit: tidegate.MustLimit(spec), Cost: 1, MaxWait: time.Minute}, 1)
		spec.Terms = &tidegate.Terms{Handling: tidegate.Handling{Queue: &tidegate.Queue{Places: 1, MaxWait: time.Minute, DropOldest: true}}}
		if spec.Burst = 1; a == tidegate.TokenBucket {
			f(a.String()+" in place of the oldest", tidegate.Check{Key: "k", Limit: tidegate.MustLimit(spec), Cost: 1, MaxWait: 5 * time.Second}, 2)
		} else {
			f(a.String()+" in place of the oldest", checkOf(tidegate.MustLimit(spec)), 2)
		}
	}
}

// shuffled is a matcher whose limits are asked together, in any order.
type shuffled struct {
	mu     sync.Mutex
	random *rand.Rand
	checks []tidegate.Check
}

func (s *shuffled) Match(_ *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.random.Shuffle(len(s.checks), func(i, j int) { s.checks[i], s.checks[j] = s.checks[j], s.checks[i] })
	return append(dst, s.checks...)
}

// Whatever queues a request stands in, and whoever leaves them, no more are in than there are slots, and in
// the end all slots are free.
func TestSlotsAmongQueues(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 7))
			queue := func() *tidegate.Terms {
				return &tidegate.Terms{Handling: tidegate.Handling{Queue: &tidegate.Queue{Places: 1 + random.Int64N(10), MaxWait: 20 * time.Second, DropOldest: random.IntN(2) == 0}}}
			}
			spec := tidegate.Spec{Name: "slots", Events: 1 + random.Int64N(4), Period: time.Second, Algorithm: tidegate.Concurrency}
			if random.IntN(2) == 0 {
				spec.Terms = queue()
			}
			slots := tidegate.MustLimit(spec)
			all := &shuffled{random: rand.New(rand.NewPCG(seed, 8)), checks: []tidegate.Check{{Key: "k", Limit: slots, Cost: 1}}}
			if random.IntN(2) == 0 {
				a := []tidegate.Algorithm{tidegate.SlidingLog, tidegate.FixedWindow, tidegate.SlidingWindow}[random.IntN(3)]
				queued := tidegate.MustLimit(tidegate.Spec{Name: "queued", Events: 5, Period: time.Second, Algorithm: a, Terms: queue()})
				all.checks = append(all.checks, tidegate.Check{Key: "k", Limit: queued, Cost: 1})
			}
			if random.IntN(3) > 0 {
				a := []tidegate.Algorithm{tidegate.LeakyBucket, tidegate.TokenBucket}[random.IntN(2)]
				all.checks = append(all.checks, checkOf(dropping(a, 1+random.Int64N(5), 1+random.Int64N(10), 30*time.Second)))
			}
			store := memory.New()
			s := New(chain.Adapt(store))
			gate := tidegate.NewGate(all, s)
			var in atomic.Int64
			var done sync.WaitGroup
			for range 100 {
				waits, takes := time.Hour, time.Duration(random.IntN(3000))*ms
				if random.IntN(3) == 0 {
					waits = time.Duration(random.IntN(4000)) * ms
				}
				done.Go(func() {
					ctx, leave := context.WithCancel(t.Context())
					defer leave()
					impatient := time.AfterFunc(waits, leave)
					d, visit := gate.Enter(ctx, &tidegate.Request{Method: "GET", Path: "/"})
					if d.OK && impatient.Stop() {
						if n := in.Add(1); n > slots.Events {
							t.Errorf("seed %d: %d are in by %d slots", seed, n, slots.Events)
						}
						time.Sleep(takes)
						in.Add(-1)
					}
					_ = visit.End(tidegate.Outcome{Status: 200})
				})
				time.Sleep(time.Duration(random.IntN(400)) * ms)
			}
			done.Wait()
			if free := tidegate.New(store, slots).Peek(t.Context(), "k").Remaining; free != slots.Events || s.Waiting() != 0 {
				t.Errorf("seed %d: %d of %d slots are free in the end, and %d wait", seed, free, slots.Events, s.Waiting())
			}
		})
	}
}

// Requests with slots and without have turns of the same bucket: those behind who leaves move up, and the
// oldest makes room for the newest, whoever of them has a slot.
func TestTurnsWithSlotsAndWithout(t *testing.T) {
	for _, a := range []tidegate.Algorithm{tidegate.LeakyBucket, tidegate.TokenBucket} {
		for mix := range 1 << 4 {
			for _, drops := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					s := New(chain.Adapt(memory.New()))
					places := int64(3)
					if drops {
						places = 2
					}
					turn := checkOf(dropping(a, 10, places, time.Minute))
					leaving, leave := context.WithCancel(t.Context())
					defer leave()
					start := time.Now()
					var done sync.WaitGroup
					var left [4]time.Duration
					var ok [4]bool
					for i := range left { // one goes, and the others wait
						checks := []tidegate.Check{turn}
						if mix>>i&1 != 0 {
							checks = append(checks, tidegate.Check{Key: "k", Limit: tidegate.Slots(10, time.Hour), Cost: 1})
						}
						ctx := t.Context()
						if i == 1 {
							ctx = leaving
						}
						done.Go(func() {
							d, err := s.Take(ctx, checks, 1)
							left[i], ok[i] = time.Since(start), err == nil && d.OK
						})
						synctest.Wait()
					}
					if !drops {
						leave()
					}
					done.Wait()
					if ok != [4]bool{true, false, true, true} || left != [4]time.Duration{0, 0, 100 * ms, 200 * ms} {
						t.Errorf("%s, slots of %04b, drops %t: %t after %s", a, mix, drops, ok, left)
					}
				})
			}
		}
	}
}
