package storetest

import (
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// RunShared holds two stores, as two processes would have them, to reservations that are
// settled by the other. open returns them, empty. If they share their counters, what one
// has reserved the other settles, once, by the text of the receipt. If not, each says that
// the other's are elsewhere, and the estimate stays charged.
func RunShared(t *testing.T, shared bool, open func(t *testing.T) (a, b tidegate.Store)) {
	t.Helper()
	for _, k := range kinds {
		if k.spec.Algorithm == tidegate.Concurrency {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			one, other := open(t)
			a, b := &subject{T: t, store: one}, &subject{T: t, store: other}
			l := k.slow("shared tokens", 100)
			if shared {
				settleShared(a, b, l)
			} else {
				settleApart(a, b, l)
			}
		})
	}
}

func settleShared(a, b *subject, l *tidegate.Limit) {
	f := func(key string, actual, left int64) {
		a.Helper()
		r := a.reserve(time.Hour, estimate(check(l, key, 60)))
		b.wantLeft(40, check(l, key, 1))
		b.wantSettle(nil, r, actual)
		a.wantLeft(left, check(l, key, 1))
		for range 2 {
			a.wantSettle(tidegate.ErrSettled, r, 0)
			b.wantSettle(tidegate.ErrSettled, r, 0)
		}
		a.wantLeft(left, check(l, key, 1))
	}
	f("less", 37, 63)
	f("cancelled", 0, 100)
	f("more", 75, 25)
}

func settleApart(a, b *subject, l *tidegate.Limit) {
	r := a.reserve(time.Hour, estimate(check(l, "ann", 60)))
	b.wantLeft(100, check(l, "ann", 1))
	b.wantSettle(tidegate.ErrElsewhere, r, 10)
	a.wantLeft(40, check(l, "ann", 1))
	b.wantLeft(100, check(l, "ann", 1))
	a.wantSettle(nil, r, 10) // it is still to be settled where it belongs
	a.wantLeft(90, check(l, "ann", 1))
}
