package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"tidegate.dev/tidegate"
)

// refusals are errors by which a store that works says no.
var refusals = []error{tidegate.ErrLeaseLost, tidegate.ErrSettled, tidegate.ErrUnsupported, tidegate.ErrFull}

// record counts how a call ended that began then and was for so many requests. What is
// done aside, for no request, does not open the circuit.
func (n *Node) record(err error, began time.Duration, requests int, aside bool) {
	if err == nil {
		n.count.good.Add(uint64(requests))
		return
	}
	for _, no := range refusals {
		if errors.Is(err, no) {
			n.count.good.Add(uint64(requests))
			return
		}
	}
	if errors.Is(err, tidegate.ErrCannotAsk) { // others can be; see unasked
		n.count.rejected.Add(int64(requests))
		return
	}
	n.failed(err, began, requests, aside)
}

// failed counts a failure of a call that began then, for so many requests.
func (n *Node) failed(err error, began time.Duration, requests int, aside bool) {
	switch {
	case isBusy(err):
		n.count.busy.Add(int64(requests))
	case unsure(err):
		n.count.timeouts.Add(int64(requests))
	default:
		n.count.errors.Add(int64(requests))
	}
	if aside {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stepCircuitLocked(event{kind: failed, now: n.now(), began: began, times: requests, good: n.signs()}, err)
}

// isBusy reports whether a call was not made because too many were under way, here or in
// a layer below.
func isBusy(err error) bool {
	var b interface{ Busy() bool }
	return errors.As(err, &b) && b.Busy()
}

// signs are how often the backend has shown that it works.
func (n *Node) signs() uint64 { return n.count.good.Load() + uint64(n.count.rejected.Load()) }

// stepCircuitLocked lets the circuit take a step, and what goes by it follow. err is a
// failure, or nil.
func (n *Node) stepCircuitLocked(e event, err error) action {
	if err != nil {
		n.cause = err
	}
	before := n.circuit.state
	e.chance = rand.Float64()
	var todo action
	n.circuit, todo = n.circuit.step(e)
	state := n.circuit.state
	if (state == OK) != (before == OK) {
		n.turned = e.now
	}
	if before == Degraded && state != Degraded {
		n.reachable = e.now
		n.held.begin(e.now)
	}
	if state == Degraded && err != nil {
		why := fmt.Errorf("%w: %s failed %d times, next probe in %s: %w",
			ErrOpen, n.o.Name, n.circuit.failed, (n.circuit.next - e.now).Round(time.Millisecond), err)
		n.why.Store(&why)
	}
	n.share.Store(n.circuit.share(e.now))
	if state != OK {
		n.repayLocked()
	}
	return todo
}

// unsure reports whether what failed with err may have been charged all the same.
func unsure(err error) bool {
	if errors.Is(err, ErrOpen) { // whatever the failure before was
		return false
	}
	var t interface{ Timeout() bool }
	return errors.Is(err, ErrTimeout) || errors.Is(err, context.Canceled) || errors.As(err, &t) && t.Timeout()
}

// begin reports whether the backend may be called once more.
func (n *Node) begin() bool {
	if n.inFlight.Add(1) > int64(n.o.InFlight) {
		n.inFlight.Add(-1)
		return false
	}
	return true
}

// tripped notes how long a call took that was answered.
func (n *Node) tripped(took time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.roundTrip = n.roundTrip.add(took)
	n.reserve.Store(int64(n.roundTrip.reserve()))
}
