package guard

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"tidegate.dev/tidegate"
)

// answers are errors by which a store that works says no.
var answers = []error{tidegate.ErrLeaseLost, tidegate.ErrSettled, tidegate.ErrUnsupported, tidegate.ErrFull}

// judge counts how a call that began then ended. What was asked the wrong way never
// gets here: see misused. What is done aside, for no request, is no reason to leave
// the inner store alone.
func (g *Guard) judge(err error, began time.Duration, aside bool) {
	if err == nil {
		g.count.good.Inc()
		return
	}
	for _, a := range answers {
		if errors.Is(err, a) {
			g.count.good.Inc()
			return
		}
	}
	if errors.Is(err, tidegate.ErrCannotAsk) { // others can be; see unasked
		g.count.rejected.Add(1)
		return
	}
	switch {
	case isBusy(err):
		g.count.busy.Add(1)
	case unsure(err):
		g.count.timeouts.Add(1)
	default:
		g.count.errors.Add(1)
	}
	if aside {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stepLocked(event{kind: failed, now: g.now(), began: began, good: g.signs()}, err)
}

// isBusy reports whether a call was not made because too many were under way, here or in
// a layer below.
func isBusy(err error) bool {
	var b interface{ Busy() bool }
	return errors.Is(err, ErrBusy) || errors.As(err, &b) && b.Busy()
}

// signs are how often the inner store has shown that it works.
func (g *Guard) signs() uint64 { return g.count.good.Load() + uint64(g.count.rejected.Load()) }

// stepLocked lets the breaker take a step, and what goes by it follow. err is a
// failure, or nil.
func (g *Guard) stepLocked(e event, err error) action {
	if err != nil {
		g.cause = err
	}
	before := g.breaker.state
	e.chance = rand.Float64()
	var todo action
	g.breaker, todo = g.breaker.step(e)
	state := g.breaker.state
	if (state == OK) != (before == OK) {
		g.turned = e.now
	}
	if before == Degraded && state != Degraded {
		g.reachable = e.now
	}
	if state == Degraded && err != nil {
		why := fmt.Errorf("%w: %w", ErrLeftAlone, err)
		g.why.Store(&why)
	}
	g.share.Store(g.breaker.share(e.now))
	if state != OK {
		g.keepLocked()
	}
	return todo
}
