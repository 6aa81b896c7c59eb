package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/testdep"
)

// threeSubjects is a request that is held to limits of a user, an address and everybody,
// which live in different slots; those of the user are of all kinds.
func threeSubjects(user, ip string, a tidegate.Algorithm, each, all int64) []tidegate.Check {
	limit := func(name, scope string, events int64, a tidegate.Algorithm, period time.Duration) *tidegate.Limit {
		return tidegate.MustLimit(tidegate.Spec{Name: name, Scope: scope, Events: events, Period: period, Algorithm: a})
	}
	return []tidegate.Check{
		{Key: user, Cost: 1, Limit: limit("api "+a.String(), "user", each, a, 100*24*time.Hour)},
		{Key: ip, Cost: 1, Limit: limit("api "+a.String(), "ip", each, tidegate.SlidingLog, 24*time.Hour)},
		{Cost: 1, Limit: limit("api "+a.String(), "everyone", all, tidegate.TokenBucket, 24*time.Hour)},
	}
}

func left(t *testing.T, s *Store, c tidegate.Check) int64 {
	t.Helper()
	c.Cost = 0
	return mustTake(t, s, 1, c).Remaining
}

// A request on three subjects in three slots is charged to all or to none, in the end,
// and never to more than there is.
func TestClusterSubjects(t *testing.T) {
	t.Parallel()
	s := openTest(t, clusterOf(testdep.RedisCluster(t, 3, 0)))
	for _, a := range []tidegate.Algorithm{
		tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SubWindows, tidegate.SlidingLog, tidegate.Concurrency,
	} {
		t.Run(a.String(), func(t *testing.T) {
			const users, all = 6, 40
			var admitted [users]atomic.Int64
			var asked sync.WaitGroup
			for worker := range 8 {
				asked.Go(func() {
					r := rand.New(rand.NewPCG(uint64(worker), 1))
					for range 60 {
						i := r.IntN(users)
						checks := threeSubjects(fmt.Sprint("u", i), fmt.Sprint("10.0.0.", i), a, 10, all)
						d, err := s.Take(context.Background(), checks, 1+r.IntN(2))
						if err != nil {
							t.Errorf("Take: %v", err)
						}
						admitted[i].Add(d.Granted)
					}
				})
			}
			asked.Wait()
			var sum int64
			for i := range users {
				n := admitted[i].Load()
				sum += n
				checks := threeSubjects(fmt.Sprint("u", i), fmt.Sprint("10.0.0.", i), a, 10, all)
				if got := left(t, s, checks[0]); n > 10 || got != 10-n {
					t.Errorf("user %d: %d of 10 admitted, and %d left", i, n, got)
				}
				if got := left(t, s, checks[1]); got != 10-n {
					t.Errorf("address %d: %d of 10 admitted, and %d left", i, n, got)
				}
			}
			wide := threeSubjects("", "", a, 10, all)[2]
			if got := left(t, s, wide); sum > all || got != all-sum {
				t.Errorf("%d of %d admitted, and %d left", sum, all, got)
			}
		})
	}
}

// The clocks of the masters differ, and a Decision has one time. What is given back by it
// lands all the same, slots are renewed and freed, estimates settled.
func TestClusterReceipts(t *testing.T) {
	t.Parallel()
	s := openTest(t, clusterOf(testdep.RedisCluster(t, 3, 0)))
	ctx := context.Background()
	for _, a := range []tidegate.Algorithm{tidegate.SlidingLog, tidegate.Concurrency} {
		checks := threeSubjects("ann", "10.0.0.1", a, 10, 1000)
		d := mustTake(t, s, 3, checks...)
		if d.Granted != 3 {
			t.Fatalf("%+v, want 3 granted", d)
		}
		if a == tidegate.Concurrency {
			for i := range int64(3) {
				if err := s.Renew(ctx, d.At+i, checks); err != nil {
					t.Errorf("renew slot %d: %v", i, err)
				}
			}
		}
		back := append([]tidegate.Check(nil), checks...)
		for i := range back {
			back[i].Cost = -1
		}
		for i := range int64(3) {
			if err := s.Adjust(ctx, d.At+i, back); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range checks {
			if got, want := left(t, s, c), c.Limit.Events; got != want {
				t.Errorf("%s: %d left after all was given back, want %d", c.Limit, got, want)
			}
		}
		for i := range checks {
			checks[i].Cost, checks[i].Estimate = 4, a != tidegate.Concurrency || i > 0
		}
		_, id, err := s.Reserve(ctx, checks, time.Minute)
		if err != nil || id == "" {
			t.Fatalf("Reserve: id %q, %v", id, err)
		}
		if err := s.Settle(ctx, id, 1); err != nil {
			t.Fatal(err)
		}
		if err := s.Settle(ctx, id, 0); err != tidegate.ErrSettled {
			t.Errorf("settled twice: %v", err)
		}
		for _, c := range checks {
			want := c.Limit.Events - 1
			if !c.Estimate {
				want = c.Limit.Events - 4
			}
			if got := left(t, s, c); got != want {
				t.Errorf("%s: %d left after it was settled, want %d", c.Limit, got, want)
			}
		}
	}
}

// Where an answer is lost, what the others have charged is given back; the request costs
// at most what it asked for, and nothing is over.
func TestClusterLostReplies(t *testing.T) {
	t.Parallel()
	nodes := testdep.RedisCluster(t, 3, 0, "--cluster-require-full-coverage", "no")
	s := openTest(t, clusterOf(nodes))
	const asked = 20
	var all [][]tidegate.Check
	for i := range asked {
		all = append(all, threeSubjects(fmt.Sprint("user", i), fmt.Sprint("10.0.1.", i), tidegate.FixedWindow, 5, 1000))
		mustTake(t, s, 1, all[i]...)
	}
	nodes[1].Pause()
	failed := int64(0)
	for _, checks := range all {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		if _, err := s.Take(ctx, checks, 1); err != nil {
			failed++
		}
		cancel()
	}
	nodes[1].Resume()
	if failed == 0 || failed == asked {
		t.Fatalf("%d of %d requests met the node that did not answer: the test has lost its point", failed, asked)
	}
	time.Sleep(2 * backTime) // for what is still on its way back
	var lost int64
	for _, checks := range all {
		for _, c := range checks[:2] {
			got := left(t, s, c)
			if got < 3 || got > 4 {
				t.Errorf("%s of %s: %d left of 5, want 3 or 4", c.Key, c.Limit, got)
			}
			lost += 4 - got
		}
	}
	wide := 1000 - asked - left(t, s, all[0][2])
	if admitted := asked - failed; wide < admitted || wide > asked {
		t.Errorf("the widest paid for %d, with %d admitted of %d", wide, admitted, asked)
	}
	t.Logf("%d of %d were not answered, and cost %d", failed, asked, lost+wide-3*(asked-failed))
}
