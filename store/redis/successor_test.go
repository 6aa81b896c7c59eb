package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
)

// A bucket that has taken the place of others, after several changes, follows those in Redis as it does
// in memory, to the tick: of all sizes, in vectors of any order, with limits beside them, and by itself
// in between. Requests that cost nothing change nothing.
func TestSuccessorsAsInMemory(t *testing.T) {
	testdep.SkipUnderRace(t)
	t.Parallel()
	server := testdep.Redis(t)
	for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.LeakyBucket} {
		t.Run(a.String(), func(t *testing.T) {
			var now time.Time
			clock := func() time.Time { return now }
			redis := openTest(t, Config{Addrs: []string{server.Socket}, pretend: clock})
			followed := 0
			for seed := range testdep.Longer(uint64(60), 3000) {
				r := rand.New(rand.NewPCG(seed, uint64(a)))
				now = time.Date(2026, time.January, 5, 1, 0, 0, 0, time.UTC).Add(time.Duration(r.Int64N(1e15)).Truncate(time.Microsecond))
				limits := randomSuccessors(r, a, fmt.Sprint("seed ", seed))
				memory := memory.Open(memory.Config{Now: clock})
				for step := range 40 {
					checks, n := randomVector(r, limits), pick(r, 1, 1, 1, 2, 5)
					both := askBoth(t, redis, memory, checks, n)
					if both[0] != both[1] {
						t.Fatalf("seed %d, step %d: Redis and memory say of %v\n%s\n%s", seed, step, checks, both[0], both[1])
					}
					for _, l := range limits {
						left := askBoth(t, redis, memory, []tidegate.Check{{Key: "k", Limit: l}}, 1)
						if left[0] != left[1] {
							t.Fatalf("seed %d, step %d, after %v: Redis and memory say of %s\n%s\n%s", seed, step, checks, l, left[0], left[1])
						}
					}
					if len(checks) > 1 {
						followed++
					}
					now = now.Add(pick(r, 0, 0, time.Millisecond, time.Duration(r.Int64N(int64(limits[0].Period)))).Truncate(time.Microsecond))
				}
			}
			if followed == 0 {
				t.Error("no vector had a successor: the test has lost its point")
			}
		})
	}
}

// randomSuccessors are a bucket, two that it has taken the place of, and a log.
func randomSuccessors(r *rand.Rand, a tidegate.Algorithm, name string) []*tidegate.Limit {
	bucket := func(terms *tidegate.Terms) *tidegate.Limit {
		for {
			l, err := tidegate.NewLimit(tidegate.Spec{
				Name: name, Algorithm: a, Terms: terms,
				Period: pick(r, 17*time.Millisecond, time.Second, time.Minute, 433*time.Second, time.Hour, 90*24*time.Hour),
				Events: pick(r, 1, 3, 7, 10, 100, 9_973, 1<<20, 1+r.Int64N(50)),
				Burst:  pick(r, 0, 1, 5, r.Int64N(100)),
			})
			if err == nil {
				return l
			}
		}
	}
	successor := bucket(nil)
	followed := &tidegate.Terms{Handling: tidegate.Handling{Successor: successor}}
	before, older := bucket(followed), bucket(followed)
	return []*tidegate.Limit{successor, before, older, tidegate.MustLimit(tidegate.Spec{Name: name, Algorithm: tidegate.SlidingLog, Events: 1009, Period: time.Minute})} // of equal shares, stores name either
}

// randomVector is about some of the limits, mostly about the buckets.
func randomVector(r *rand.Rand, limits []*tidegate.Limit) (checks []tidegate.Check) {
	use := limits[:2]
	switch r.IntN(6) {
	case 0:
		use = limits[r.IntN(4):][:1]
	case 1:
		use = limits
	case 2, 3:
		use = limits[:3]
	}
	if len(use) > 2 && (use[0].Period == use[1].Period || use[1].Period == use[2].Period || use[2].Period == use[0].Period) {
		use = limits[:2] // of three of which two are merged, and one only marks, stores may name either
	}
	cost := pick[int64](r, 1, 1, 1, 2, 7, 0)
	for _, i := range r.Perm(len(use)) {
		c := tidegate.Check{Key: "k", Limit: use[i], Cost: cost}
		if c.Limit != limits[3] {
			c.MaxWait = pick(r, 0, time.Second, time.Hour)
		}
		c.Advisory, c.Floor = r.IntN(8) == 0, pick[int64](r, 0, 0, 0, 1)
		checks = append(checks, c)
	}
	return checks
}

// askBoth returns what two stores say.
func askBoth(t *testing.T, redis, memory tidegate.Store, checks []tidegate.Check, n int) (both [2]string) {
	t.Helper()
	for i, store := range []tidegate.Store{redis, memory} {
		d, err := store.Take(context.Background(), checks, n)
		if err != nil {
			t.Fatal(err)
		}
		us := func(d time.Duration) time.Duration { return (d + time.Microsecond - 1).Truncate(time.Microsecond) } // Redis' resolution
		both[i] = fmt.Sprintf("ok %v, never %v, granted %d, left %d, retry %s, reset %s, wait %s", d.OK, d.Never, d.Granted, d.Remaining, us(d.RetryAfter), us(d.ResetAfter), us(d.Wait))
	}
	return both
}
