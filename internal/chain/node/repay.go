package node

import (
	"errors"
	"math/rand/v2"
	"time"

	"tidegate.dev/tidegate"
)

// addToBacklog adds copies of checks that were admitted locally to the backlog.
func (n *Node) addToBacklog(checks []tidegate.Check, copies int64) {
	nodes := n.nodes()
	n.addPartToBacklog(checks, n.localPart(checks, nodes), copies, nodes, n.now())
}

// addPartToBacklog adds what the checks of p were charged locally to the backlog.
func (n *Node) addPartToBacklog(checks []tidegate.Check, p *part, copies, nodes int64, now time.Duration) {
	for i, at := range p.from[:p.own] {
		c := &checks[at]
		if c.Cost == 0 || c.Advisory && p.checks[i].Over || c.Limit.Algorithm == tidegate.Concurrency {
			continue
		}
		admitted := c.Cost * copies
		n.serverOf(c).addToBacklog(c, admitted, admitted*nodes, nodes, now) // also if the local store has no room for so many
	}
}

// addToBacklog adds what was admitted for c to the backlog; charged is the same in events of the fleet.
func (s *server) addToBacklog(c *tidegate.Check, admitted, charged, nodes int64, now time.Duration) {
	n := s.node
	n.mu.Lock()
	defer n.mu.Unlock()
	var used int64
	if charged < 0 || s.backlog.entries[counterOf(c)] == nil {
		used, _ = n.localUse(c.Limit, c.Key)
	}
	s.backlog.add(c, admitted, charged, used, nodes, now)
	if len(s.backlog.entries) > 0 {
		s.repayLocked()
	}
}

// reckonedLocked returns the time until which the backlog fades; see backlogEntry.reckoned.
func (s *server) reckonedLocked(now time.Duration) time.Duration {
	if s.circuit.state == Degraded {
		return now
	}
	return s.reachable
}

// repayLocked starts repay, unless it runs already.
func (s *server) repayLocked() {
	if s.repaying || s.node.closed {
		return
	}
	s.repaying = true
	s.node.stopped.Go(s.repay)
}

// repay is the goroutine that probes a server until its circuit is closed, and posts the
// backlog. It ends when there is nothing left to do.
func (s *server) repay() {
	n := s.node
	next := n.now() + jitter(postEvery)
	told := OK
	for {
		s.moved()
		if s.tick() == probe {
			s.probe()
		}
		s.post(&next)
		s.freeKept()
		if state := s.state(); state != told {
			told = state
			n.tell()
		}
		wait, done := s.idle(told, next)
		if done {
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-n.stop:
			timer.Stop()
			return
		}
	}
}

// jitter returns a duration from half of d to one and a half.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d) }

func (s *server) tick() action {
	s.node.mu.Lock()
	defer s.node.mu.Unlock()
	return s.stepCircuitLocked(event{kind: tick, now: s.node.now()}, nil)
}

func (s *server) state() State {
	s.node.mu.Lock()
	defer s.node.mu.Unlock()
	return s.circuit.state
}

// tell calls OnState with the current health.
func (n *Node) tell() {
	if n.o.OnState != nil {
		n.telling.Lock()
		defer n.telling.Unlock()
		n.o.OnState(n.Health())
	}
}

// idle returns how long there is nothing to do; done means that repay can end. told is the
// state of which OnState was last called, and next is when the next posts are due.
func (s *server) idle(told State, next time.Duration) (wait time.Duration, done bool) {
	n := s.node
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.now()
	state := s.circuit.state
	if state != told {
		return 0, false
	}
	var holding time.Duration
	if state != Degraded { // what is noted in an outage is held after it, whatever was held before
		holding = s.held.over(now)
	}
	n.setImpairedLocked()
	if state == OK && holding == 0 && !s.backlog.some() {
		s.repaying = false
		return 0, true
	}
	wait = s.circuit.wake(now)
	if soon := max(next-now, time.Millisecond); s.circuit.answers() && (state == OK || soon < wait) {
		wait = soon // even if there is nothing to post yet: requests for held counters add to the backlog, and do not wake repay
	}
	return wait, false
}

// probe sends a probe to the server, and tells the circuit whether it was answered.
func (s *server) probe() {
	n := s.node
	err := s.askProbe()
	e := event{kind: answered}
	if err != nil && !errors.Is(err, tidegate.ErrCannotAsk) { // which is an answer
		e.kind = unanswered
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	e.now = n.now()
	s.stepCircuitLocked(e, err)
}
