package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
)

// refusals are errors that a working store returns.
var refusals = []error{tidegate.ErrLeaseLost, tidegate.ErrSettled, tidegate.ErrElsewhere, tidegate.ErrUnsupported, tidegate.ErrFull}

// record counts the result of a call of a stream, which began at began and was for so many requests.
func (n *Node) record(s *stream, err error, began time.Duration, requests int) {
	if n.worked(err, requests) {
		s.server.good.Add(uint64(requests))
		for _, part := range s.where {
			part.good.Add(uint64(requests))
		}
		return
	}
	n.failed(s, err, began, requests)
}

// worked reports whether a call that was for so many requests shows that the server works, and
// counts it if so.
func (n *Node) worked(err error, requests int) bool {
	switch {
	case !showsLife(err):
		return false
	case errors.Is(err, tidegate.ErrCannotAsk): // others can be; see unasked
		n.count.rejected.Add(int64(requests))
	default:
		n.count.good.Add(uint64(requests))
	}
	return true
}

// showsLife reports whether the result of a call shows that the server works.
func showsLife(err error) bool {
	if err == nil || errors.Is(err, tidegate.ErrCannotAsk) {
		return true
	}
	for _, no := range refusals {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// failed counts the failure of a call of a stream, which began at began and was for so many requests.
func (n *Node) failed(s *stream, err error, began time.Duration, requests int) {
	n.countFailure(err, requests)
	if s.server != n.multi {
		s.server.fail(err, began, requests)
		return
	}
	for _, part := range s.where {
		part.suspect(requests)
	}
}

func (n *Node) countFailure(err error, requests int) {
	switch {
	case isBusy(err):
		n.count.busy.Add(int64(requests))
	case unsure(err):
		n.count.timeouts.Add(int64(requests))
	default:
		n.count.errors.Add(int64(requests))
	}
}

// fail tells the circuit that a call failed, which began at began and was for so many requests.
func (s *server) fail(err error, began time.Duration, requests int) {
	s.node.mu.Lock()
	defer s.node.mu.Unlock()
	s.failLocked(err, began, s.node.now(), requests)
}

func (s *server) failLocked(err error, began, now time.Duration, requests int) {
	s.stepCircuitLocked(event{kind: failed, now: now, began: began, times: requests, good: s.good.Load()}, err)
}

// isBusy reports whether a call was not made because too many were under way, here or in
// a layer below.
func isBusy(err error) bool {
	var b interface{ Busy() bool }
	return errors.As(err, &b) && b.Busy()
}

// stepCircuitLocked feeds e to the circuit and updates what depends on its state. err is the
// failure that e tells of, or nil.
func (s *server) stepCircuitLocked(e event, err error) action {
	if err != nil {
		s.cause = err
	}
	before := s.circuit.state
	e.chance = rand.Float64()
	if s.roundTrip.known || unsure(err) || isBusy(err) { // otherwise it has never answered, and does not pause
		e.trip = s.roundTrip.pausing(s.node.o.Deadline)
	}
	var todo action
	s.circuit, todo = s.circuit.step(e)
	state := s.circuit.state
	if (state == OK) != (before == OK) {
		s.turned = e.now
	}
	if before == Degraded && state != Degraded {
		s.reachable = e.now
		s.held.begin(e.now)
	}
	if state == Degraded && err != nil {
		why := fmt.Errorf("%w: %s failed %d times, next probe in %s: %w",
			ErrOpen, s.name(), s.circuit.failed, (s.circuit.next - e.now).Round(time.Millisecond), err)
		s.why.Store(&why)
	}
	s.share.Store(s.circuit.share(e.now))
	if state != OK {
		s.node.impaired.Store(true)
		s.repayLocked()
	}
	return todo
}

// mayHaveArrived reports whether the backend may have done what failed with err: it was
// sent, and there was no answer.
func mayHaveArrived(err error) bool {
	return !isBusy(err) && !errors.Is(err, ErrOpen) && !showsLife(err)
}

// mayBeCharged reports whether a Take that failed with err may have been charged, as its reply did not come in
// time or did not arrive at all.
func mayBeCharged(err error) bool {
	return unsure(err) || errors.Is(err, chain.ErrNoReply) && !errors.Is(err, ErrOpen) // which wraps the failure before
}

// unsure reports whether err means that there was no answer in time.
func unsure(err error) bool {
	if errors.Is(err, ErrOpen) { // whatever the failure before was
		return false
	}
	var t interface{ Timeout() bool }
	return errors.Is(err, ErrTimeout) || errors.Is(err, context.Canceled) || errors.As(err, &t) && t.Timeout()
}
