package node

import (
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// An answer that was made of an earlier one, such as a refusal that is remembered below,
// has no receipt, and is not taken for what was just seen.
func TestNoReceiptIsNoNews(t *testing.T) {
	g := newNode(memory.New(), Options{})
	defer g.Close()
	l := tidegate.MustLimit(tidegate.Spec{Name: "r", Events: 10, Period: time.Hour, Algorithm: tidegate.FixedWindow})
	checks := []tidegate.Check{{Key: "k", Limit: l, Cost: 1}}
	f := func(at, want int64) {
		t.Helper()
		g.see(checks, &tidegate.Decision{Limit: l, RetryAfter: time.Minute, Receipt: tidegate.Receipt{At: at}}, time.Second)
		if used, _, _ := g.seen.look(g.seen.name(l, "k")); used != want {
			t.Errorf("at %d: %d are remembered as used, want %d", at, used, want)
		}
	}
	f(0, 0)
	f(1, 10)
}
