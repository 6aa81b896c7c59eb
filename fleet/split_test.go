package fleet_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
)

func splitLimit(spec tidegate.Spec) *tidegate.Limit {
	spec.Terms = &tidegate.Terms{Handling: tidegate.Handling{Consistency: tidegate.Split}}
	return tidegate.MustLimit(spec)
}

// exhaust takes what there is, and returns how much that was.
func exhaust(t *testing.T, s tidegate.Store, l *tidegate.Limit, key string) (n int) {
	t.Helper()
	for range 10_000 {
		d, err := s.Take(context.Background(), []tidegate.Check{{Key: key, Limit: l, Cost: 1}}, 1)
		if err != nil || d.Receipt.Origin != tidegate.OriginSplit {
			t.Fatalf("%+v, %v", d, err)
		}
		if !d.OK {
			return n
		}
		n++
	}
	t.Fatalf("%s is no limit", l)
	return n
}

// Instances that count each other in Redis divide a limit among them. Redis is not asked about
// it, and a change of their number refills nobody.
func TestSplitByHeartbeats(t *testing.T) {
	t.Parallel()
	server := testdep.Redis(t)
	url := "redis://" + server.Addr
	l := splitLimit(tidegate.Spec{Name: "split", Events: 30, Period: 24 * time.Hour})
	if l.Algorithm != tidegate.TokenBucket {
		t.Fatalf("it is a %s", l.Algorithm)
	}
	var all []*fleet.Store
	for range 5 {
		all = append(all, open(t, url, fleet.Options{Deadline: patient}))
	}
	agree := func(n int) func() bool {
		return func() bool {
			for _, s := range all {
				if s.Instances() != n {
					return false
				}
			}
			return true
		}
	}
	testdep.Eventually(t, "all five are counted", agree(5))
	for i, s := range all {
		if n := exhaust(t, s, l, "ann"); n != 6 {
			t.Errorf("instance %d admitted %d of 30, want 6", i, n)
		}
	}
	for _, s := range all[2:] {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	all = all[:2]
	testdep.Eventually(t, "two are left", agree(2))
	for i, s := range all {
		if n := exhaust(t, s, l, "ann"); n != 0 {
			t.Errorf("instance %d admitted %d more when others had left", i, n)
		}
		if n := exhaust(t, s, l, "bob"); n != 15 {
			t.Errorf("instance %d of two admitted %d of 30", i, n)
		}
	}
	for range 5 {
		all = append(all, open(t, url, fleet.Options{Deadline: patient}))
	}
	testdep.Eventually(t, "all seven are counted", agree(7))
	for i, s := range all {
		if n := exhaust(t, s, l, "carl"); n != 4 {
			t.Errorf("instance %d of seven admitted %d of 30", i, n)
		}
	}
	for key := range strings.FieldsSeq(server.Do("KEYS", "*")) {
		if strings.Contains(key, ":{") {
			t.Errorf("Redis was asked: it has %s", key)
		}
	}
}

// Beside other limits, what the share granted goes back if Redis refuses; and what Redis cannot
// be asked about does not concern shares.
func TestSplitBesideOthers(t *testing.T) {
	t.Parallel()
	server := testdep.Redis(t)
	five := func() int { return 5 }
	s := open(t, "redis://"+server.Addr, fleet.Options{Deadline: patient, Instances: five})
	share := splitLimit(tidegate.Spec{Name: "split", Events: 50, Period: 24 * time.Hour})
	strict := tidegate.MustLimit(tidegate.Spec{Name: "strict", Events: 3, Period: 24 * time.Hour})
	take := func(checks ...tidegate.Check) tidegate.Decision {
		t.Helper()
		d, err := s.Take(t.Context(), checks, 1)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	var last tidegate.Decision
	for i := range 6 {
		d := take(tidegate.Check{Key: "ann", Limit: strict, Cost: 1}, tidegate.Check{Key: "ann", Limit: share, Cost: 1})
		if d.OK != (i < 3) {
			t.Errorf("%d: %+v", i, d)
		}
		if d.OK {
			last = d
		}
	}
	if d := take(tidegate.Check{Key: "ann", Limit: share}); d.Remaining != 7 {
		t.Errorf("%d are left of 10 after three were admitted", d.Remaining)
	}
	// Both parts go back by one receipt.
	back := []tidegate.Check{{Key: "ann", Limit: strict, Cost: -1}, {Key: "ann", Limit: share, Cost: -1}}
	if err := s.Adjust(t.Context(), last.Receipt, back); err != nil {
		t.Error(err)
	}
	if d := take(tidegate.Check{Key: "ann", Limit: share}); d.Remaining != 8 {
		t.Errorf("%d are left of 10 after one of three came back", d.Remaining)
	}
	if d := take(tidegate.Check{Key: "ann", Limit: strict}); d.Remaining != 1 {
		t.Errorf("%d are left of 3 in Redis", d.Remaining)
	}
	server.Kill()
	if n := exhaust(t, s, share, "ann"); n != 8 {
		t.Errorf("%d were admitted without Redis, want the 8 that were left", n)
	}
}

// A successor goes on with what is used of shares.
func TestSplitIsHandedOver(t *testing.T) {
	server := testdep.Redis(t)
	two := func() int { return 2 }
	file := filepath.Join(t.TempDir(), "counters")
	l := splitLimit(tidegate.Spec{Name: "split", Events: 20, Period: 360 * 24 * time.Hour, Algorithm: tidegate.FixedWindow})
	old := open(t, "redis://"+server.Addr, fleet.Options{Deadline: patient, Instances: two})
	exhaust(t, old, l, "ann")
	if err := old.HandOver(file); err != nil {
		t.Fatal(err)
	}
	heir := open(t, "redis://"+server.Addr, fleet.Options{Deadline: patient, Instances: two, JoinLater: true})
	if err := heir.TakeOver(file); err != nil {
		t.Fatal(err)
	}
	heir.Join()
	if n := exhaust(t, heir, l, "ann"); n != 0 {
		t.Errorf("an upgrade refilled %d", n)
	}
	if n := exhaust(t, heir, l, "bob"); n != 10 {
		t.Errorf("%d of 20 for one of two", n)
	}
	if left, _ := filepath.Glob(file + ".*"); len(left) != 0 {
		t.Errorf("left behind: %s", left)
	}
}

// Without Redis a program says how many instances there are, and may say otherwise at any time.
func TestSplitWithoutRedis(t *testing.T) {
	n := 5
	s := fleet.Split(memory.New(), func() int { return n })
	l := splitLimit(tidegate.Spec{Name: "split", Events: 100, Period: 24 * time.Hour})
	if got := exhaust(t, s, l, "ann"); got != 20 {
		t.Errorf("one of five admitted %d of 100", got)
	}
	for _, n = range []int{2, 7, 1, 5} {
		if got := exhaust(t, s, l, "ann"); got != 0 {
			t.Errorf("%d more with %d instances", got, n)
		}
	}
	whole := tidegate.New(s, tidegate.MustLimit(tidegate.Spec{Name: "whole", Events: 10, Period: 24 * time.Hour}))
	for i := range 12 {
		if d := whole.Allow(t.Context(), "ann"); d.OK != (i < 10) {
			t.Errorf("a limit that is not split: %d: %+v", i, d)
		}
	}
}

// Whoever may wait for a share comes at its pace, in order.
func TestSplitInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fleet.Split(memory.New(), func() int { return 5 })
		lim := tidegate.New(s, splitLimit(tidegate.Spec{Name: "split", Events: 10, Period: time.Second}))
		start := time.Now()
		for range 12 {
			if err := lim.Wait(t.Context(), "ann"); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took < 5*time.Second || took > 5100*time.Millisecond { // two at once, then two a second
			t.Errorf("12 took %s at 2/s", took)
		}
	})
}

// Whoever leaves the line has not had its turn.
func TestSplitLeavingTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fleet.Split(memory.New(), func() int { return 1 })
		lim := tidegate.New(s, splitLimit(tidegate.Spec{Name: "split", Events: 1, Period: time.Minute})).OnStoreFailure(tidegate.FailLocal)
		if err := lim.Wait(t.Context(), "ann"); err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		if err := lim.Wait(ctx, "ann"); !errors.Is(err, context.Canceled) {
			t.Errorf("%v after a second, want that it has left", err)
		}
	})
}

// vector matches every request with the same checks.
type vector []tidegate.Check

func (v vector) Match(_ *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	return append(dst, v...)
}

// Where nothing is in flight, a refusal starts the block, at any cost and share.
func TestSplitStartsBlocks(t *testing.T) {
	const long = 72 * time.Hour
	for _, spec := range []tidegate.Spec{
		{Algorithm: tidegate.TokenBucket, Period: 24 * time.Hour},
		{Algorithm: tidegate.FixedWindow, Period: 24 * time.Hour},
		{Algorithm: tidegate.SlidingWindow, Period: 24 * time.Hour},
		{Algorithm: tidegate.SubWindows, Period: 24 * time.Hour},
		{Algorithm: tidegate.SlidingLog, Period: 24 * time.Hour},
		{Algorithm: tidegate.Quota, Calendar: tidegate.Day},
	} {
		for _, cost := range []int64{1, 2, 3, 4, 7, 20} {
			for _, n := range []int{1, 2, 3, 5} {
				synctest.Test(t, func(t *testing.T) {
					b := tidegate.MustLimit(tidegate.Spec{Name: "login", Scope: "block", Events: 1, Period: long, Terms: &tidegate.Terms{Role: tidegate.Blocks}})
					spec := spec
					spec.Name, spec.Events, spec.Terms = "login", 100, &tidegate.Terms{
						Handling: tidegate.Handling{Consistency: tidegate.Split},
						AtEnd:    tidegate.AtEnd{Counts: []tidegate.StatusRange{{From: 401, To: 401}}, Block: b},
					}
					checks := vector{{Key: "a", Limit: tidegate.MustLimit(spec), Cost: cost}, {Key: "a", Limit: b}}
					g := tidegate.NewGate(checks, fleet.Split(memory.New(), func() int { return n }))
					for range 101 {
						d, v := g.Enter(t.Context(), &tidegate.Request{})
						if d.OK {
							v.End(tidegate.Outcome{Status: 401})
							continue
						}
						if d.RetryAfter != long {
							t.Errorf("%s, cost %d, %d instances: refused for %s, want %s", spec.Algorithm, cost, n, d.RetryAfter, long)
						}
						return
					}
					t.Errorf("%s, cost %d, %d instances: never refused", spec.Algorithm, cost, n)
				})
			}
		}
	}
}
