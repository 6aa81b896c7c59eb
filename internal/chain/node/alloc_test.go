//go:build !race

package node

import (
	"context"
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// While the store answers, a call allocates nothing; nor does the local store while it
// does not answer.
func TestTakeAllocates(t *testing.T) {
	request, cancel := context.WithCancel(t.Context())
	defer cancel()
	f := func(name string, g *Node, ctx context.Context, want float64) {
		t.Helper()
		checks := []tidegate.Check{one(limit("a", 100, tidegate.FailLocal)), advice(limit("b", 2000, tidegate.FailLocal)), one(limit("c", 10, tidegate.FailLocal))}
		for range 20 { // into the refusals
			_, _ = g.Take(ctx, checks, 1)
		}
		if n := testing.AllocsPerRun(200, func() { _, _ = g.Take(ctx, checks, 1) }); n > want {
			t.Errorf("%s: %v allocations, want %v", name, n, want)
		}
		_ = g.Close()
	}
	f("alone", newNode(memory.New(), Options{Deadline: patient, DenyEntries: -1}), context.Background(), 0)
	f("request", newNode(memory.New(), Options{Deadline: patient, DenyEntries: -1}), request, 0)
	f("remembered", newNode(memory.New(), Options{Deadline: patient}), request, 0)
	f("degraded", newNode(&faulty{fault: broken}, Options{Deadline: patient}), context.Background(), 0)
}
