package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"tidegate.dev/tidegate"
)

var (
	// ErrTimeout is the reason when the inner store has no answer by the deadline.
	// It may still be charged.
	ErrTimeout = errors.New("the store did not answer in time")
	// ErrBusy is the reason when too many calls wait for the inner store already.
	ErrBusy = errors.New("too many calls wait for the store")
	// ErrLeftAlone is the reason when the inner store has failed too often to be
	// asked. It wraps the last failure.
	ErrLeftAlone = errors.New("the store is left alone after it failed")
)

// call is a call of the inner store on a goroutine of its own. Once it is left
// behind it belongs to that goroutine.
type call struct {
	guard *Guard
	run   func() // c.work, made once
	take  func(context.Context) error
	state atomic.Uint32
	done  chan struct{}

	// What is done, and when and under what it began.
	do    func(context.Context) error
	aside bool // see judge
	ctx   context.Context
	began time.Duration
	err   error

	// Take's: checks and the keys of them are copies, since the caller may use
	// its memory again as soon as it has an answer.
	checks []tidegate.Check
	keys   []byte
	n      int
	d      tidegate.Decision
}

// The states of a call.
const (
	begun    = iota
	finished // it has a result
	late     // left behind at the deadline, and counted as a failure
	left     // left behind by its caller: how it ends is still to be counted
)

func newCall(g *Guard) *call {
	c := &call{guard: g, done: make(chan struct{}, 1)}
	c.run = c.work
	c.take = func(ctx context.Context) (err error) {
		c.d, err = g.inner.Take(ctx, c.checks, c.n)
		return err
	}
	return c
}

// work is what the goroutine does.
func (c *call) work() {
	c.err = safely(c.ctx, c.do)
	c.guard.count.inFlight.Add(-1)
	if c.state.CompareAndSwap(begun, finished) {
		c.done <- struct{}{}
		return
	}
	if c.state.Load() == left {
		c.guard.judge(c.err, c.began, c.aside)
	}
	c.release()
}

// safely turns a panic into an error: on a goroutine of ours nobody else could
// recover from it.
func safely(ctx context.Context, do func(context.Context) error) (err error) {
	defer recovered(&err)
	return do(ctx)
}

func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the store panicked: %v", p)
	}
}

// release makes c ready to be used again.
func (c *call) release() {
	clear(c.checks)
	c.ctx, c.do, c.err, c.aside = nil, nil, nil, false
	c.guard.calls.Put(c)
}

// copyChecks copies checks with their keys into memory of the call.
func (c *call) copyChecks(checks []tidegate.Check) {
	size := 0
	for i := range checks {
		size += len(checks[i].Key)
	}
	c.checks = append(c.checks[:0], checks...)
	c.keys = slices.Grow(c.keys[:0], size)
	for i := range c.checks {
		from := len(c.keys)
		c.keys = append(c.keys, checks[i].Key...)
		key := c.keys[from:]
		c.checks[i].Key = unsafe.String(unsafe.SliceData(key), len(key))
	}
}

// wait starts c and returns when it has a result, at the deadline, or when the
// caller leaves. It reports whether c was left behind, and with it all that c has.
func (g *Guard) wait(ctx context.Context, c *call) (behind bool, err error) {
	if g.count.inFlight.Add(1) > int64(g.o.InFlight) {
		g.count.inFlight.Add(-1)
		g.judge(ErrBusy, c.began, c.aside)
		return false, ErrBusy
	}
	r := g.roundAt(c.began)
	c.ctx = r.within(ctx)
	c.state.Store(begun)
	go c.run()
	select {
	case <-c.done:
	case <-r.ctx.Done():
		began, aside := c.began, c.aside
		if c.state.CompareAndSwap(begun, late) { // c is no longer ours
			g.judge(g.late, began, aside)
			return true, g.late
		}
		<-c.done
	case <-ctx.Done():
		if c.state.CompareAndSwap(begun, left) {
			return true, ctx.Err()
		}
		<-c.done
	}
	g.judge(c.err, c.began, c.aside)
	return false, c.err
}

// take is Take of the inner store, by the deadline.
func (g *Guard) take(ctx context.Context, checks []tidegate.Check, n int, now time.Duration) (tidegate.Decision, error) {
	if g.o.Inline {
		d, err := g.takeInline(g.roundAt(now).ctx, checks, n)
		g.judge(err, now, false)
		return d, err
	}
	c := g.calls.Get().(*call)
	c.copyChecks(checks)
	c.n, c.do, c.began = n, c.take, now
	behind, err := g.wait(ctx, c)
	if behind {
		return tidegate.Decision{}, err
	}
	d := c.d
	for i := range checks {
		if checks[i].Advisory {
			checks[i].Over = c.checks[i].Over
		}
	}
	c.release()
	return d, err
}

// takeInline is safely for Take, without memory for a function.
func (g *Guard) takeInline(ctx context.Context, checks []tidegate.Check, n int) (d tidegate.Decision, err error) {
	defer recovered(&err)
	return g.inner.Take(ctx, checks, n)
}

// unsure reports whether what failed with err may have been charged all the same.
func unsure(err error) bool {
	if errors.Is(err, ErrLeftAlone) { // whatever the failure before was
		return false
	}
	var t interface{ Timeout() bool }
	return errors.Is(err, ErrTimeout) || errors.Is(err, context.Canceled) || errors.As(err, &t) && t.Timeout()
}
