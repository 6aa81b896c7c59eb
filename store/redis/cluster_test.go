package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
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

func left(t testing.TB, s *Store, c tidegate.Check) int64 {
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
				if err := s.Renew(ctx, d.Receipt.Copy(i), checks); err != nil {
					t.Errorf("renew slot %d: %v", i, err)
				}
			}
		}
		back := append([]tidegate.Check(nil), checks...)
		for i := range back {
			back[i].Cost = -1
		}
		for i := range int64(3) {
			if err := s.Adjust(ctx, d.Receipt.Copy(i), back); err != nil {
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
		reserved, err := s.Reserve(ctx, checks, time.Minute)
		if err != nil || reserved.Receipt.Handle.IsZero() {
			t.Fatalf("Reserve: %+v, %v", reserved, err)
		}
		if err := s.Settle(ctx, reserved.Receipt, 1); err != nil {
			t.Fatal(err)
		}
		if err := s.Settle(ctx, reserved.Receipt, 0); err != tidegate.ErrSettled {
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
	// What gives back has a second for it.
	testdep.Undisturbed(t, 200*time.Millisecond, func(t testing.TB) {
		s := openTest(t, clusterOf(nodes))
		const asked = 20
		var answered, unanswered [][]tidegate.Check
		var silent, others []tidegate.Check // subjects of the unanswered: of the node that is silent, and of the others
		for i := range asked {
			checks := threeSubjects(fmt.Sprint("user", i), fmt.Sprint("10.0.1.", i), tidegate.FixedWindow, 5, 1000)
			mustTake(t, s, 1, checks...)
			var here, there []tidegate.Check
			for _, c := range checks {
				slot := nodes[0].Do("CLUSTER", "KEYSLOT", "{"+string(appendTag(nil, c.Limit.Scope, c.Key))+"}")
				if holder(t, nodes, slot) == 1 {
					there = append(there, c)
				} else if c.Key != "" {
					here = append(here, c)
				}
			}
			if len(there) == 0 {
				answered = append(answered, checks)
				continue
			}
			unanswered = append(unanswered, checks)
			silent, others = append(silent, there...), append(others, here...)
		}
		if len(answered) == 0 || len(unanswered) == 0 || len(others) == 0 {
			t.Fatalf("%d of %d requests meet the node that does not answer, and %d subjects elsewhere: the test has lost its point", len(unanswered), asked, len(others))
		}
		nodes[1].Pause()
		defer nodes[1].Resume()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		var failing sync.WaitGroup
		for _, checks := range unanswered {
			failing.Go(func() {
				if d, err := s.Take(ctx, checks, 1); err == nil {
					t.Errorf("%s is answered %+v by a node that is silent", checks[0].Key, d)
				}
			})
		}
		for _, checks := range answered {
			mustTake(t, s, 1, checks...)
		}
		failing.Wait()
		nodes[1].Resume()
		testdep.Eventually(t, "what the others have charged is given back", func() bool {
			return !slices.ContainsFunc(others, func(c tidegate.Check) bool { return left(t, s, c) != 4 })
		})
		for _, checks := range answered {
			for _, c := range checks[:2] {
				if got := left(t, s, c); got != 3 {
					t.Errorf("%s of %s: %d left of 5 after 2, want 3", c.Key, c.Limit, got)
				}
			}
		}
		var lost int64
		for _, c := range silent {
			got := left(t, s, c)
			if got < 3 || got > 4 {
				t.Errorf("%s of %s: %d left of 5, want 3 or 4", c.Key, c.Limit, got)
			}
			lost += 4 - got
		}
		// The widest is asked last, and was not for those that the others did not answer.
		if wide := 1000 - asked - left(t, s, answered[0][2]); wide != int64(len(answered)) {
			t.Errorf("the widest paid for %d, with %d admitted of %d", wide, len(answered), asked)
		}
		t.Logf("%d of %d were not answered, and cost %d", len(unanswered), asked, lost)
	})
}
