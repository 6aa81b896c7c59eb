package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// A slot moves from one master to another, key by key, and back, while its keys are taken
// from. Callers are sent after them (ASK, MOVED); what fails meanwhile, because the two
// keys of a subject are apart, was not charged, and no longer fails when the slot has moved.
func TestReshard(t *testing.T) {
	t.Parallel()
	nodes := testdep.RedisCluster(t, 3, 0)
	s := openTest(t, clusterOf(nodes))
	const capacity = 1_000_000
	checks := []tidegate.Check{ // a key for each, in one slot, and nothing comes back to either during the test
		{Key: "ann", Cost: 1, Limit: tidegate.MustLimit(tidegate.Spec{Name: "api", Scope: "user", Events: capacity, Period: 100 * 24 * time.Hour, Algorithm: tidegate.FixedWindow})},
		{Key: "ann", Cost: 1, Limit: tidegate.MustLimit(tidegate.Spec{Name: "api", Scope: "user", Events: 10_000, Period: 24 * time.Hour, Algorithm: tidegate.SlidingLog})},
	}
	slot := nodes[0].Do("CLUSTER", "KEYSLOT", s.prefix+":api:{user=ann}")
	from := holder(t, nodes, slot)
	to := (from + 1) % len(nodes)

	var passed [2]atomic.Int64 // by a subject with one key, and with both
	var failed atomic.Int64
	stop := make(chan struct{})
	var callers sync.WaitGroup
	for i := range 6 {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				some := checks[:1+i%2]
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				d, err := s.Take(ctx, append([]tidegate.Check(nil), some...), 1)
				cancel()
				switch {
				case err == nil:
					passed[len(some)-1].Add(d.Granted)
				case strings.Contains(err.Error(), "TRYAGAIN") && errors.Is(err, tidegate.ErrCannotAsk): // no trouble of others
					failed.Add(1)
				default:
					t.Errorf("Take: %v", err)
				}
			}
		})
	}
	for range 4 {
		testdep.Eventually(t, "they are asked", func() bool { return passed[0].Load() > 0 && passed[1].Load() > 0 })
		move(t, nodes, slot, from, to, func() {
			before := failed.Load()
			testdep.Eventually(t, "a subject whose keys are apart is refused an answer", func() bool { return failed.Load() > before })
		})
		before := passed[1].Load()
		testdep.Eventually(t, "both keys are found where they are now", func() bool { return passed[1].Load() > before+10 })
		from, to = to, from
	}
	close(stop)
	callers.Wait()
	one, both := passed[0].Load(), passed[1].Load()
	if got := left(t, s, checks[0]); got != capacity-one-both {
		t.Errorf("%d and %d have passed, and %d are left of %d", one, both, got, capacity)
	}
	if got := left(t, s, checks[1]); got != max(10_000-both, 0) {
		t.Errorf("%d have passed both, and %d are left of 10000", both, got)
	}
	t.Logf("%d passed, %d were told to try again", one+both, failed.Load())
}

// holder is the master that has a slot.
func holder(t testing.TB, nodes []*testdep.RedisServer, slot string) int {
	t.Helper()
	for i, n := range nodes {
		for _, line := range strings.Split(n.Do("CLUSTER", "NODES"), "\n") {
			if !strings.Contains(line, "myself") {
				continue
			}
			var first, last, want int
			fields := strings.Fields(line)
			_, _ = fmt.Sscanf(fields[len(fields)-1], "%d-%d", &first, &last)
			_, _ = fmt.Sscan(slot, &want)
			if first <= want && want <= last {
				return i
			}
		}
	}
	t.Fatalf("nobody has the slot %s", slot)
	return 0
}

// move moves a slot key by key; halfway is called when one of its keys has moved and
// another has not.
func move(t *testing.T, nodes []*testdep.RedisServer, slot string, from, to int, halfway func()) {
	t.Helper()
	source, target := nodes[from], nodes[to]
	host, port, _ := net.SplitHostPort(target.Addr)
	target.Do("CLUSTER", "SETSLOT", slot, "IMPORTING", source.Do("CLUSTER", "MYID"))
	source.Do("CLUSTER", "SETSLOT", slot, "MIGRATING", target.Do("CLUSTER", "MYID"))
	for i, key := range strings.Split(source.Do("CLUSTER", "GETKEYSINSLOT", slot, "100"), "\n") {
		source.Do("MIGRATE", host, port, key, "0", "5000")
		if i == 0 {
			halfway()
		}
	}
	id := target.Do("CLUSTER", "MYID")
	for _, n := range []*testdep.RedisServer{target, source} {
		n.Do("CLUSTER", "SETSLOT", slot, "NODE", id)
	}
	for i, n := range nodes {
		if i != from && i != to {
			n.Do("CLUSTER", "SETSLOT", slot, "NODE", id)
		}
	}
	// A master that gets the slot back before it has heard that it had lost it would
	// believe the old news when they come, and each of the two take the other for its holder.
	testdep.Eventually(t, "all nodes agree who has what since when", func() bool {
		for _, n := range nodes[1:] {
			if shares(n) != shares(nodes[0]) {
				return false
			}
		}
		return true
	})
}

// shares is what a node knows of who has which slots, and by which epoch. Of slots on their
// way, in brackets, each knows its own.
func shares(n *testdep.RedisServer) string {
	var all []string
	for line := range strings.Lines(n.Do("CLUSTER", "NODES")) {
		if f := strings.Fields(line); len(f) >= 8 {
			held := slices.DeleteFunc(f[8:], func(s string) bool { return s[0] == '[' })
			all = append(all, fmt.Sprint(f[0], f[6], held))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}
