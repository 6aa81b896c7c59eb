package memory

import (
	"context"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// A counter that comes twice in a vector is charged once for both, even if its table was
// dropped while the vector was read: otherwise the second would wait for the first for ever.
func TestCounterTwiceInAVectorWhileItsTableIsDropped(t *testing.T) {
	for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SlidingLog, tidegate.SubWindows} {
		s := New()
		pair := tidegate.MustLimit(tidegate.Spec{Name: "pair", Events: 3, Period: time.Hour, Algorithm: a})
		before, err := s.compile(pair)
		if err != nil {
			t.Fatal(err)
		}
		if !s.dropIfEmpty(before.table) {
			t.Fatal("an empty table is not dropped")
		}
		after := s.current(before)
		if after.table == before.table || !after.sharesCounters(before) {
			t.Fatalf("%s: bound again, it does not share its counters", a)
		}
		key := s.hash.sum("ann", after.salt)
		v := vector{pending: []pendingCheck{{lim: before, key: key, ask: ask(1, 0, 1)}, {lim: after, key: key, ask: ask(1, 0, 1)}}}
		v.merge(1)
		if !v.pending[1].skip || v.pending[0].ask.Cost != 2 {
			t.Errorf("%s: the two are not merged: %+v", a, v.pending)
		}
		checks := []tidegate.Check{{Key: "ann", Limit: pair, Cost: 1}, {Key: "ann", Limit: pair, Cost: 1}}
		if d, err := s.Take(context.Background(), checks, 1); err != nil || !d.OK || d.Remaining != 1 {
			t.Errorf("%s: %+v, %v", a, d, err)
		}
	}
}
