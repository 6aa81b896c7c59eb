package node

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
	"tidegate.dev/tidegate/store/redis"
)

// Two nodes with eight callers each, all on one key of a Redis: for every algorithm, what
// was let pass is what a store that counts for all would have let pass at those instants.
func TestHotKeyOfAFleet(t *testing.T) {
	server := testdep.Redis(t)
	for _, a := range []tidegate.Algorithm{
		tidegate.TokenBucket, tidegate.LeakyBucket, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SubWindows, tidegate.SlidingLog,
	} {
		t.Run(a.String(), func(t *testing.T) {
			t.Parallel()
			for period := 70 * time.Millisecond; ; period *= 4 { // slow machines use up less in a period
				idle := hotKey(t, server, a, period)
				if idle == "" {
					return
				}
				if period > 5*time.Second {
					t.Fatal(idle)
				}
				t.Logf("with %s: %s", period, idle)
			}
		})
	}
}

// hotKey has the nodes ask for one key, and returns what they did not do.
func hotKey(t *testing.T, server *testdep.RedisServer, a tidegate.Algorithm, period time.Duration) (idle string) {
	t.Helper()
	spec := tidegate.Spec{Name: fmt.Sprintf("%s-%d", a, period.Milliseconds()), Events: 40, Period: period, Algorithm: a}
	if a == tidegate.LeakyBucket {
		spec.Burst = 20
	}
	hot := tidegate.Check{Key: "all", Limit: tidegate.MustLimit(spec), Cost: 1}
	var all sync.WaitGroup
	var mu sync.Mutex
	var passed []tidegate.Decision
	nodes := make([]*Node, 2)
	for i := range nodes {
		inner, err := redis.Open(redis.Config{Addrs: []string{server.Socket}, Deadline: patient})
		if err != nil {
			t.Fatal(err)
		}
		defer inner.Close()
		nodes[i] = open(t, inner, Options{Deadline: patient})
	}
	for i := range 16 {
		all.Go(func() {
			for range 300 {
				d, err := nodes[i%2].Take(context.Background(), []tidegate.Check{hot}, 1+i%3)
				if err != nil {
					t.Errorf("Take: %v", err)
					return
				}
				if d.OK {
					mu.Lock()
					passed = append(passed, d)
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	replay(t, hot, passed)
	for _, s := range nodes {
		if got := s.Health(); got.Calls+got.Denied >= got.Asked || got.Shared == 0 || got.Denied == 0 {
			idle = fmt.Sprintf("%+v: nothing was asked for together, or refused from memory", got)
		}
	}
	return idle
}

// replay asks a store in memory for what has passed, at the same instants.
func replay(t *testing.T, c tidegate.Check, passed []tidegate.Decision) {
	slices.SortFunc(passed, func(a, b tidegate.Decision) int { return cmp.Compare(a.Receipt.At, b.Receipt.At) })
	if len(passed) == 0 {
		t.Fatal("nothing has passed")
	}
	now := time.UnixMicro(passed[0].Receipt.At / 1024)
	oracle := memory.Open(memory.Config{Now: func() time.Time { return now }})
	for _, d := range passed {
		now = time.UnixMicro(d.Receipt.At / 1024)
		want, err := oracle.Take(context.Background(), []tidegate.Check{c}, int(d.Granted))
		if err != nil {
			t.Fatal(err)
		}
		if want.Granted != d.Granted {
			t.Fatalf("%s at %s: %d let pass, %d would have been", c.Limit, now.Format("05.000000"), d.Granted, want.Granted)
		}
	}
}
