package tidegate_test

import (
	"testing"
	"time"
	"unsafe"

	"tidegate.dev/tidegate"
)

func TestOutranks(t *testing.T) {
	small, large := tidegate.PerMinute(10), tidegate.PerHour(1000)
	type D = tidegate.Decision
	none := D{OK: true}
	refused := func(retry time.Duration) D { return D{Limit: small, RetryAfter: retry} }
	left := func(l *tidegate.Limit, n int64) D { return D{Limit: l, OK: true, Remaining: n} }
	never := D{Limit: large, Never: true}

	// f: a is told rather than b, and not the other way round.
	f := func(a, b D) {
		t.Helper()
		if !a.Outranks(&b) {
			t.Errorf("%+v does not outrank %+v", a, b)
		}
		if b.Outranks(&a) {
			t.Errorf("%+v outranks %+v", b, a)
		}
	}
	f(left(small, 10), none)
	f(refused(time.Second), none)
	f(refused(time.Second), left(small, 0))
	f(refused(2*time.Second), refused(time.Second))
	f(never, refused(time.Hour))
	f(never, left(small, 0))
	f(left(small, 3), left(small, 4))
	f(left(small, 0), left(large, 1))
	f(left(small, 4), left(large, 500)) // 40 % are less than 50 %
	f(left(large, 300), left(small, 4)) // 30 % are less than 40 %
	f(left(large, 0), left(small, 1))   // nothing is less than anything

	// Equals do not outrank each other, so the first of them stays.
	same := func(a, b D) {
		t.Helper()
		if a.Outranks(&b) || b.Outranks(&a) {
			t.Errorf("one of %+v and %+v outranks the other", a, b)
		}
	}
	same(none, none)
	same(never, never)
	same(refused(time.Second), refused(time.Second))
	same(left(small, 5), left(large, 500))
	same(left(small, 0), left(large, 0))
}

// A struct of another size is copied in pieces that overlap, and each copy waits for the
// one before it.
func TestDecisionIsCopiedInWholePieces(t *testing.T) {
	if size := unsafe.Sizeof(tidegate.Decision{}); size%16 != 0 && unsafe.Sizeof(uintptr(0)) == 8 {
		t.Errorf("a Decision has %d bytes: want a multiple of 16", size)
	}
}
