package tidegate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// FailMode is what a Limiter or a Gate answers when its store cannot.
type FailMode uint8

const (
	// FailDefault is FailOpen for a Limiter or a Gate, and FailLocal for the store of package fleet. In
	// the Terms of a limit it leaves the choice to these.
	FailDefault FailMode = iota
	// FailOpen admits: the limiter's outage must not become the site's.
	FailOpen
	// FailClosed refuses, with a RetryAfter of one second.
	FailClosed
	// FailLocal goes on counting in this process alone. Only a store that is a
	// [LocalFallback] can do that, such as those of package fleet.
	FailLocal
)

// Limiter holds keys to one or more limits, charged together or not at all.
// Use Allow when the caller can be turned away, Wait when it can sleep, Reserve
// when the cost is known only afterwards, Acquire to hold a slot. All of them
// may be called from any number of goroutines. Limiters are made by [New].
type Limiter struct {
	store  Store
	limits []*Limit
	fail   FailMode
	one    OneTaker  // the store, if it is a OneTaker and there is one limit; otherwise nil
	checks sync.Pool // of *[]Check: a slice passed to an interface would escape
}

// New returns a Limiter that keeps its counters in store. Limiters that share a
// store are told apart by their limits' names, algorithms and periods: give
// limits a Name when one store serves several purposes. New panics when a limit is nil, was
// not made by NewLimit, or is an access rule, and when two of them would share a counter.
func New(store Store, limits ...*Limit) *Limiter {
	for i, l := range limits {
		if l == nil || l.identity == "" {
			panic("tidegate: New: a limit is nil, or was not made by NewLimit")
		}
		if l.Algorithm == Deny {
			panic("tidegate: New: " + l.String() + " is an access rule, which counts nothing; use a Gate")
		}
		for _, other := range limits[:i] {
			if l.identity == other.identity {
				panic("tidegate: New: limits " + other.String() + " and " + l.String() + " share a counter; name them")
			}
		}
	}
	return newLimiter(store, FailOpen, append([]*Limit(nil), limits...))
}

func newLimiter(store Store, fail FailMode, limits []*Limit) *Limiter {
	l := &Limiter{store: store, limits: limits, fail: fail}
	if len(limits) == 1 {
		l.one, _ = store.(OneTaker)
	}
	l.checks.New = func() any {
		checks := make([]Check, len(limits))
		for i := range checks {
			checks[i].Limit = limits[i]
		}
		return &checks
	}
	return l
}

// OnStoreFailure returns a Limiter on the same counters that answers by mode
// when the store cannot. A new Limiter has FailOpen. It panics when mode is FailLocal and
// the store is not a [LocalFallback].
func (l *Limiter) OnStoreFailure(mode FailMode) *Limiter {
	mustFallBack("Limiter", l.store, mode)
	return newLimiter(l.store, mode, l.limits)
}

// mustFallBack panics if mode is FailLocal and store is not a LocalFallback.
func mustFallBack(who string, store Store, mode FailMode) {
	if _, ok := store.(LocalFallback); !ok && mode == FailLocal {
		panic(fmt.Sprintf("tidegate: %s.OnStoreFailure(FailLocal): %T cannot count locally; use the store of package fleet, or FailOpen or FailClosed", who, store))
	}
}

// Limits returns the limits that keys are held to; do not change the slice.
func (l *Limiter) Limits() []*Limit { return l.limits }

// Allow is shorthand for AllowN(ctx, key, 1).
func (l *Limiter) Allow(ctx context.Context, key string) (d Decision) {
	l.take(ctx, &d, key, 1, 0)
	return d
}

// AllowN decides now whether key may spend n, and charges it if so; n of 0 or
// less peeks. It always answers: when the store cannot, the fail mode decides and
// Decision.Err says why. A caller that has left is refused: ctx was cancelled before the
// store answered or, if that is a [LocalFallback], its deadline has passed.
func (l *Limiter) AllowN(ctx context.Context, key string, n int64) (d Decision) {
	l.take(ctx, &d, key, max(n, 0), 0)
	return d
}

// Peek tells what Allow would, and charges nothing.
func (l *Limiter) Peek(ctx context.Context, key string) (d Decision) {
	l.take(ctx, &d, key, 0, 0)
	return d
}

// Wait is shorthand for WaitN(ctx, key, 1).
func (l *Limiter) Wait(ctx context.Context, key string) error {
	return l.WaitN(ctx, key, 1)
}

// take decides for all methods that charge at once. It writes the answer to d, which saves
// each of them a copy.
func (l *Limiter) take(ctx context.Context, d *Decision, key string, cost int64, maxWait time.Duration) {
	var err error
	if l.one != nil {
		*d, err = l.one.TakeOne(ctx, key, l.limits[0], cost, maxWait)
	} else {
		*d, err = l.takeVector(ctx, key, cost, maxWait)
	}
	if err != nil {
		*d = l.failed(ctx, err)
	}
}

func (l *Limiter) takeVector(ctx context.Context, key string, cost int64, maxWait time.Duration) (Decision, error) {
	held := l.checks.Get().(*[]Check)
	checks := *held
	for i := range checks {
		c := &checks[i]
		c.Key, c.Cost, c.MaxWait = key, cost, maxWait
	}
	d, err := l.store.Take(ctx, checks, 1)
	for i := range checks {
		checks[i].Key = "" // the pool must not keep the memory that the key lies in
	}
	l.checks.Put(held)
	return d, err
}

// failed returns the decision when the store has returned err. A caller that has left is not
// admitted by any fail mode: it would be served uncharged.
func (l *Limiter) failed(ctx context.Context, err error) Decision {
	d := Decision{Err: err}
	if len(l.limits) > 0 {
		d.Limit = l.limits[0]
	}
	if l.fail == FailClosed || l.left(ctx) {
		d.RetryAfter = time.Second
	} else {
		d.OK, d.Granted = true, 1
	}
	return d
}

// left reports whether the caller has left. A deadline may also be the time that it gives the store,
// but not if the store is a LocalFallback, which has an answer in any case.
func (l *Limiter) left(ctx context.Context) bool {
	err := ctx.Err()
	_, local := l.store.(LocalFallback)
	return errors.Is(err, context.Canceled) || err != nil && local
}

// vector returns the checks of a key, for methods that may allocate.
func (l *Limiter) vector(key string, cost int64) []Check {
	checks := make([]Check, len(l.limits))
	for i, lim := range l.limits {
		checks[i] = Check{Key: key, Limit: lim, Cost: cost}
	}
	return checks
}
