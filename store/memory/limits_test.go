package memory

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Limits are under the bound as their keys are, however many there are.
func TestManyLimitsStayWithinTheBound(t *testing.T) {
	testdep.SkipUnderRace(t)
	const limits, maxBytes = 100_000, int64(1 << 20)
	for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.SlidingLog} {
		all := make([]*tidegate.Limit, limits)
		for i := range all {
			all[i] = tidegate.MustLimit(specOf(fmt.Sprint("limit", i), a, 5, time.Hour, tidegate.EvictLeast))
		}
		before := heapInUse()
		s, _ := openAt(maxBytes)
		for i, l := range all {
			if d := ask1(t, s, l, "a"); !d.OK {
				t.Fatalf("%s: limit %d: %+v", a, i, d)
			}
			if st := s.Stats(); i%1000 == 0 && st.Bytes > maxBytes {
				t.Fatalf("%s: %d bytes after %d limits", a, st.Bytes, i)
			}
		}
		if grew := heapInUse() - before; grew > 3*maxBytes {
			t.Errorf("%s: %d limits take %d bytes, the bound is %d; %+v", a, limits, grew, maxBytes, s.Stats())
		}
		if n := ask1(t, s, all[limits-1], "a"); n.Remaining != 3 {
			t.Errorf("%s: %+v: the limit used last was forgotten", a, n)
		}
		runtime.KeepAlive(all)
	}
}

// A limit that nobody uses any more, after a reload for one, gives everything back
// while others are used.
func TestUnusedLimitsAreDropped(t *testing.T) {
	testdep.SkipUnderRace(t)
	s, clock := openAt(0)
	for i := range 500 {
		l := tidegate.MustLimit(specOf(fmt.Sprint("old", i), stateful[i%len(stateful)], 5, time.Minute, tidegate.EvictLeast))
		for k := range 100 {
			ask1(t, s, l, fmt.Sprint(k))
		}
	}
	full := s.Stats()
	clock.pass(50 * time.Hour)
	l := tidegate.MustLimit(specOf("new", tidegate.SlidingLog, 5, 1000*time.Hour, tidegate.EvictLeast))
	for k := 0; k < 400_000 && (k%10_000 > 0 || len(s.allTables()) > 25); k++ {
		ask1(t, s, l, fmt.Sprint(k))
	}
	of, all := s.LimitStats(l), s.Stats()
	if rest := all.Bytes - of.Bytes; rest > full.Bytes/20 || len(s.allTables()) > 25 || s.compiled.held > 25 {
		t.Errorf("%d of %d bytes, %d tables and %d limits are still held", rest, full.Bytes, len(s.allTables()), s.compiled.held)
	}
}

// The limit added last is forgotten with its table, and compiled again when it is used again.
func TestNewestLimitIsForgotten(t *testing.T) {
	s, clock := openAt(0)
	l := tidegate.MustLimit(specOf("one", tidegate.TokenBucket, 5, time.Minute, tidegate.EvictLeast))
	ask1(t, s, l, "a")
	dropped := s.compiled.find(l).table
	clock.pass(time.Hour)
	s.shrink(dropped, 0, s.clock.now(), dropIdle)
	if !s.dropIfEmpty(dropped) || s.compiled.find(l) != nil {
		t.Error("the limit of a table that was dropped is still found")
	}
	if d := ask1(t, s, l, "a"); !d.OK || s.compiled.find(l).table == dropped {
		t.Errorf("%+v", d)
	}
}

// New limits of one identity, one per request, do not pile up.
func TestLimitsOfOneIdentityDoNotPileUp(t *testing.T) {
	s := New()
	for k := range 10_000 {
		l := tidegate.MustLimit(tidegate.Spec{Name: "one", Algorithm: tidegate.SlidingLog, Events: 100_000 % 10_001, Period: time.Hour})
		if d, err := s.TakeOne(context.Background(), "a", l, 1, 0); err != nil || d.OK != (k < int(l.Events)) {
			t.Fatalf("request %d: %+v (%v)", k, d, err)
		}
	}
	if s.compiled.held > maxCompiled {
		t.Errorf("%d limits are bound", s.compiled.held)
	}
}

// What a bucket is decided by lies in the first cache line of its limit, and limits start at one.
func TestBucketsAreDecidedByOneCacheLine(t *testing.T) {
	const line = 64
	var lim compiledLimit
	if end := unsafe.Offsetof(lim.bucket) + unsafe.Offsetof(lim.bucket.Brim) + unsafe.Sizeof(lim.bucket.Brim); end > line {
		t.Errorf("the first %d bytes", end)
	}
	if size := unsafe.Sizeof(lim); size%line != 0 {
		t.Errorf("a limit takes %d bytes, which the heap does not align", size)
	}
}
