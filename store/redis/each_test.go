package redis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/testdep"
)

// TakeEach answers what TakeShort would, asked for one check after the other.
func TestEachIsOneAfterTheOther(t *testing.T) {
	t.Parallel()
	server := testdep.Redis(t)
	now := time.Date(2026, time.November, 29, 23, 59, 0, 0, time.UTC)
	start := now
	clock, node := func() time.Time { return now }, func() time.Time { return start } // so that calendar bounds are missed
	one := openTest(t, Config{Addrs: []string{server.Socket}, Prefix: "one", pretend: clock, node: node})
	each := openTest(t, Config{Addrs: []string{server.Socket}, Prefix: "each", pretend: clock, node: node})
	var limits []*tidegate.Limit
	add := func(s tidegate.Spec) {
		for _, events := range []int64{3, 7} { // tiers, which share their counters
			s.Events = events
			limits = append(limits, tidegate.MustLimit(s))
		}
	}
	add(tidegate.Spec{Algorithm: tidegate.TokenBucket, Period: time.Second})
	add(tidegate.Spec{Algorithm: tidegate.TokenBucket, Period: time.Minute})
	add(tidegate.Spec{Algorithm: tidegate.LeakyBucket, Period: time.Second, Burst: 4})
	add(tidegate.Spec{Algorithm: tidegate.FixedWindow, Period: time.Second})
	add(tidegate.Spec{Algorithm: tidegate.Quota, Calendar: tidegate.Day, Zone: "Asia/Seoul"})
	add(tidegate.Spec{Algorithm: tidegate.SlidingWindow, Period: time.Second})
	add(tidegate.Spec{Algorithm: tidegate.SubWindows, Period: time.Second, Parts: 5})
	add(tidegate.Spec{Algorithm: tidegate.SlidingLog, Period: time.Second, CountRejected: true})
	r := rand.New(rand.NewPCG(1, 2))
	granted, short, refused := 0, 0, 0
	for step := range 400 {
		now = now.Add(time.Duration(r.Int64N(int64(time.Second))).Truncate(time.Microsecond))
		if step%50 == 49 {
			now = now.Add(24 * time.Hour)
		}
		n := 1 + r.IntN(mostAtOnce)
		checks, copies := make([]tidegate.Check, n), make([]int, n)
		for i := range checks {
			checks[i] = tidegate.Check{Key: fmt.Sprint(r.IntN(3)), Limit: limits[r.IntN(len(limits))], Cost: r.Int64N(3), MaxWait: time.Duration(r.IntN(2)) * time.Second}
			copies[i] = 1 + r.IntN(4)
		}
		got, rest := make([]tidegate.Decision, n), make([]tidegate.Decision, n)
		if err := each.TakeEach(t.Context(), checks, copies, got, rest); err != nil {
			t.Fatal(err)
		}
		for i := range checks {
			want, wantRest, err := one.TakeShort(t.Context(), checks[i:i+1], copies[i])
			if err != nil {
				t.Fatal(err)
			}
			if got[i] != want || rest[i] != wantRest {
				t.Fatalf("step %d: %d of %+v:\ngot  %+v, %+v\nwant %+v, %+v", step, copies[i], checks[i], got[i], rest[i], want, wantRest)
			}
			switch {
			case rest[i].Limit != nil:
				short++
			case want.OK:
				granted++
			default:
				refused++
			}
		}
	}
	if min(granted, short, refused) < 100 {
		t.Errorf("%d granted, %d in part, %d refused: the test has lost its point", granted, short, refused)
	}
}

// Checks of one algorithm are one call, however many they are.
func TestEachIsOneCall(t *testing.T) {
	t.Parallel()
	server := testdep.Redis(t)
	s := openTest(t, Config{Addrs: []string{server.Socket}})
	checks, copies := make([]tidegate.Check, s.AtOnce()), make([]int, s.AtOnce())
	limits := []*tidegate.Limit{bucket("a", "user", 10, time.Minute), tidegate.MustLimit(tidegate.Spec{Name: "b", Events: 10, Period: time.Minute, Algorithm: tidegate.FixedWindow})}
	for i := range checks {
		checks[i], copies[i] = tidegate.Check{Key: fmt.Sprint(i), Limit: limits[i%2], Cost: 1}, 1
	}
	granted, rest := make([]tidegate.Decision, len(checks)), make([]tidegate.Decision, len(checks))
	for round := range 3 {
		commands(server)
		if err := s.TakeEach(t.Context(), checks, copies, granted, rest); err != nil {
			t.Fatal(err)
		}
		for i, d := range granted {
			if !d.OK || d.Remaining != int64(9-round) || d.Err != nil {
				t.Errorf("round %d: check %d: %+v", round, i, d)
			}
		}
		if got := commands(server); round > 0 && (got["evalsha"] != 2 || got["time"] != 2) {
			t.Errorf("two algorithms took %v", got)
		}
	}
}

func TestEachSaysWhatItCannot(t *testing.T) {
	t.Parallel()
	server := testdep.Redis(t)
	s := openTest(t, Config{Addrs: []string{server.Socket}})
	f := func(s *Store, c tidegate.Check, n int, want error) {
		t.Helper()
		var d, rest [1]tidegate.Decision
		if err := s.TakeEach(t.Context(), []tidegate.Check{c}, []int{n}, d[:], rest[:]); err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%d of %+v: %v, want %v", n, c, err, want)
		}
	}
	l := bucket("a", "user", 10, time.Minute)
	f(s, tidegate.Check{Key: "k", Limit: l, Cost: 1, Advisory: true}, 1, tidegate.ErrUnsupported)
	f(s, tidegate.Check{Key: "k", Limit: tidegate.Slots(3, time.Minute), Cost: 1}, 1, tidegate.ErrUnsupported)
	f(s, tidegate.Check{Key: "k", Limit: l, Cost: -1}, 1, nil)
	f(s, tidegate.Check{Key: "k", Limit: l, Cost: 1}, 0, nil)
	f(s, tidegate.Check{Key: "k", Cost: 1}, 1, nil)
	fleet := openTest(t, Config{Addrs: []string{server.Addr}, Cluster: true})
	f(fleet, tidegate.Check{Key: "k", Limit: l, Cost: 1}, 1, tidegate.ErrUnsupported)
	if fleet.AtOnce() != 1 {
		t.Errorf("a cluster takes %d at once", fleet.AtOnce())
	}
	// Without an answer, each check is told why.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var d, rest [2]tidegate.Decision
	err := s.TakeEach(ctx, []tidegate.Check{{Key: "k", Limit: l, Cost: 1}, {Key: "j", Limit: l, Cost: 1}}, []int{1, 1}, d[:], rest[:])
	if err != nil || !errors.Is(d[0].Err, context.Canceled) || !errors.Is(d[1].Err, context.Canceled) {
		t.Errorf("got %v, %+v", err, d)
	}
}
