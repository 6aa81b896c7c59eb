//go:build !race

package guard

import (
	"context"
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// While the store answers, a call allocates nothing, but for a context that has the
// caller's values; nor does the local store while it does not answer.
func TestTakeAllocates(t *testing.T) {
	request, cancel := context.WithCancel(t.Context())
	defer cancel()
	f := func(name string, g *Guard, ctx context.Context, want float64) {
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
	f("guard", New(memory.New(), Options{Deadline: patient}), context.Background(), 0)
	f("inline", New(memory.New(), Options{Deadline: patient, Inline: true}), context.Background(), 0)
	f("request", New(memory.New(), Options{Deadline: patient}), request, 1)
	f("inline request", New(memory.New(), Options{Deadline: patient, Inline: true}), request, 1)
	f("degraded", New(&faulty{fault: broken}, Options{Deadline: patient}), context.Background(), 0)
}
