package telemetry

import (
	"context"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/optional"
)

// shortTaker is a store that says what the first copy is refused with that it does
// not grant; see internal/cluster.
type shortTaker interface {
	TakeShort(ctx context.Context, checks []tidegate.Check, n int) (granted, rest tidegate.Decision, err error)
}

// eachTaker is a store that decides about several checks in one round trip; see
// internal/cluster.
type eachTaker interface {
	AtOnce() int
	TakeEach(ctx context.Context, checks []tidegate.Check, copies []int, granted, rest []tidegate.Decision) error
}

// Remote is inner with every call of Take timed: beside a way over the network, reading
// the clock is nothing. It belongs next to the store, below what answers in its place.
// There is one at most.
func (m *Metrics) Remote(inner tidegate.Store) tidegate.Store {
	call := histogram("tidegate_store_call_seconds",
		"Time that the shared store took to answer a call by requests, those included that nobody waited for any more.", 1e-5, 10)
	m.reg.MustRegister(call)
	r := remoteStore{timedStore{optional.Store{Inner: inner}, call.WithLabelValues()}}
	if short, ok := inner.(shortTaker); ok {
		each, _ := inner.(eachTaker)
		return &shortRemote{r, short, each}
	}
	return &r
}

type remoteStore struct{ timedStore }

type shortRemote struct {
	remoteStore
	short shortTaker
	each  eachTaker // nil: it is none
}

// Take implements [tidegate.Store].
func (r *remoteStore) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	defer since(time.Now(), r.took)
	return r.Inner.Take(ctx, checks, n)
}

// TakeShort implements what internal/cluster asks for.
func (r *shortRemote) TakeShort(ctx context.Context, checks []tidegate.Check, n int) (granted, rest tidegate.Decision, err error) {
	defer since(time.Now(), r.took)
	return r.short.TakeShort(ctx, checks, n)
}

// AtOnce implements what internal/cluster asks for: how many checks TakeEach is for.
func (r *shortRemote) AtOnce() int {
	if r.each == nil {
		return 1
	}
	return r.each.AtOnce()
}

// TakeEach implements what internal/cluster asks for.
func (r *shortRemote) TakeEach(ctx context.Context, checks []tidegate.Check, copies []int, granted, rest []tidegate.Decision) error {
	if r.each == nil {
		return tidegate.ErrUnsupported
	}
	defer since(time.Now(), r.took)
	return r.each.TakeEach(ctx, checks, copies, granted, rest)
}
