package redis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// TakeBatch answers what takeShort would, asked for one check after the other.
func TestBatchIsOneAfterTheOther(t *testing.T) {
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
	add(tidegate.Spec{Algorithm: tidegate.SlidingLog, Period: time.Minute, CountRejected: true})
	r := rand.New(rand.NewPCG(1, 2))
	granted, short, refused := 0, 0, 0
	for step := range 400 {
		now = now.Add(time.Duration(r.Int64N(int64(time.Second))).Truncate(time.Microsecond))
		if step%50 == 49 {
			now = now.Add(24 * time.Hour)
		}
		n := 1 + r.IntN(maxBatch)
		asks := make([]chain.Ask, n)
		for i := range asks {
			c := tidegate.Check{Key: fmt.Sprint(r.IntN(3)), Limit: limits[r.IntN(len(limits))], Cost: r.Int64N(3), MaxWait: time.Duration(r.IntN(2)) * time.Second}
			asks[i] = chain.Ask{Checks: []tidegate.Check{c}, Copies: 1 + r.IntN(4)}
		}
		if err := in(each).TakeBatch(t.Context(), asks); err != nil {
			t.Fatal(err)
		}
		for i := range asks {
			a := &asks[i]
			want, wantRest, err := one.takeWithRest(t.Context(), a.Checks, takeParams{copies: int64(a.Copies)})
			if err != nil {
				t.Fatal(err)
			}
			if a.Granted != want || a.Rest != wantRest || a.Err != nil {
				t.Fatalf("step %d: %d of %+v:\ngot  %+v, %+v, %v\nwant %+v, %+v", step, a.Copies, a.Checks, a.Granted, a.Rest, a.Err, want, wantRest)
			}
			switch {
			case a.Rest.Limit != nil:
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
func TestBatchIsOneCall(t *testing.T) {
	t.Parallel()
	server := testdep.Redis(t)
	s := openTest(t, Config{Addrs: []string{server.Socket}})
	asks := make([]chain.Ask, in(s).MaxBatch())
	const day = 24 * time.Hour // none comes back during the test
	limits := []*tidegate.Limit{bucket("a", "user", 10, day), tidegate.MustLimit(tidegate.Spec{Name: "b", Events: 10, Period: day, Algorithm: tidegate.FixedWindow})}
	for i := range asks {
		asks[i] = chain.Ask{Checks: []tidegate.Check{{Key: fmt.Sprint(i), Limit: limits[i%2], Cost: 1}}, Copies: 1}
	}
	for round := range 3 {
		commands(server)
		if err := in(s).TakeBatch(t.Context(), asks); err != nil {
			t.Fatal(err)
		}
		for i, a := range asks {
			if d := a.Granted; !d.OK || d.Remaining != int64(9-round) || a.Err != nil {
				t.Errorf("round %d: check %d: %+v", round, i, a)
			}
		}
		if got := commands(server); round > 0 && (got["evalsha"] != 2 || got["time"] != 2) {
			t.Errorf("two algorithms took %v", got)
		}
	}
}

// What cannot go with others goes alone, and an ask that is wrong fails alone.
func TestBatchOfAllKinds(t *testing.T) {
	t.Parallel()
	server := testdep.Redis(t)
	fleet := openTest(t, Config{Addrs: []string{testdep.RedisCluster(t, 3, 0)[0].Addr}, Cluster: true})
	awaitBatches(t, fleet, 3)
	l := bucket("a", "user", 10, time.Minute)
	one := func(c tidegate.Check) []tidegate.Check { return []tidegate.Check{c} }
	for _, s := range []*Store{openTest(t, Config{Addrs: []string{server.Socket}}), fleet} {
		asks := []chain.Ask{
			{Checks: one(tidegate.Check{Key: "k", Limit: l, Cost: 1, Advisory: true}), Copies: 1},
			{Checks: one(tidegate.Check{Key: "k", Limit: tidegate.Slots(3, time.Minute), Cost: 1}), Copies: 2},
			{Checks: []tidegate.Check{{Key: "k", Limit: l, Cost: 1}, {Key: "j", Limit: l, Cost: 9}}, Copies: 3},
			{Checks: one(tidegate.Check{Key: "m", Limit: l, Cost: 4}), Copies: 3},
			{Checks: one(tidegate.Check{Key: "k", Limit: l, Cost: -1}), Copies: 1},
			{Checks: one(tidegate.Check{Key: "k", Limit: l, Cost: 1}), Copies: 0},
			{Checks: one(tidegate.Check{Key: "k", Cost: 1}), Copies: 1},
		}
		if err := in(s).TakeBatch(t.Context(), asks); err != nil {
			t.Fatal(err)
		}
		for i, want := range []int64{1, 2, 1, 2, -1, -1, -1} {
			if a := &asks[i]; (a.Err != nil) != (want < 0) || want >= 0 && a.Granted.Granted != want {
				t.Errorf("ask %d: %+v", i, a)
			}
		}
		if asks[2].Rest.Limit != l || asks[3].Rest.Limit != l || asks[3].Rest.RetryAfter <= 0 {
			t.Errorf("what is not granted: %+v and %+v", asks[2].Rest, asks[3].Rest)
		}
		// Without an answer, each ask is told why.
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := in(s).TakeBatch(ctx, asks); err != nil {
			t.Fatal(err)
		}
		for i := range asks[:4] {
			if !errors.Is(asks[i].Err, context.Canceled) {
				t.Errorf("ask %d: %v", i, asks[i].Err)
			}
		}
	}
}
