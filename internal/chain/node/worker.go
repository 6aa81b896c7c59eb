package node

import (
	"fmt"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
)

// workRest sends a call again for the waiters that its reply did not answer, until all have an
// answer.
func (n *Node) workRest(c *call) {
	for c != nil {
		stamp := n.stamp()
		copies := n.send(c, stamp, 0)
		if copies == 0 {
			return
		}
		c.asks[0] = chain.Ask{Checks: c.stream.checks, Copies: copies, Handle: c.name}
		q := n.queueOf(c.stream)
		err := q.server.exchange(c.asks[:], stamp.at)
		rest, more, _ := n.deliver(c, &c.asks[0], err)
		if more {
			go q.run()
		}
		c = rest
	}
}

// send marks a call as sent and returns how many copies it asks for. If no waiter needs an answer
// any more, the call ends, and send returns 0.
func (n *Node) send(c *call, stamp stamp, lag time.Duration) (copies int) {
	sh := c.stream.shard
	sh.mu.Lock()
	defer sh.mu.Unlock()
	s := c.stream
	again := c.sent
	if copies = c.waiting() * s.copies; copies == 0 || c.done.Load() {
		switch {
		case again && !c.overdue:
			n.stepLocked(s, coalesceEvent{kind: replied, now: stamp.at})
		case s.next == c:
			s.coalescer, _ = s.coalescer.step(coalesceEvent{kind: served})
		}
		n.endCallLocked(c)
		return 0
	}
	for _, at := range n.serversOf(s) {
		at.noteAsked(stamp.at)
	}
	c.sent, c.stamp, c.back, c.late = true, stamp, stamp.at+n.o.Deadline, c.late.again()
	if s.traits&slotted != 0 {
		c.name = tidegate.NewHandle()
	}
	c.lag, c.windowed = lag, !again
	if !again {
		s.next, s.joined = nil, len(c.deadlines)
		s.coalescer, _ = s.coalescer.step(coalesceEvent{kind: sent, now: stamp.at})
	}
	n.alarmLocked(sh, c.back)
	return copies
}

// exchange sends asks to the backend, once.
func (s *server) exchange(asks []chain.Ask, began time.Duration) error {
	n := s.node
	n.count.calls.Add(1)
	err := n.takeBatch(asks)
	now := n.now()
	took := now - began
	if err == nil && replies(asks) {
		s.tripped(took, now)
	}
	if n.o.OnCall != nil {
		n.o.OnCall(took)
	}
	return err
}

// replies reports whether some of asks were answered.
func replies(asks []chain.Ask) bool {
	for i := range asks {
		if showsLife(asks[i].Err) {
			return true
		}
	}
	return false
}

func (n *Node) takeBatch(asks []chain.Ask) (err error) {
	defer recovered(&err)
	return n.inner.TakeBatch(n.contexts.late.get(n, n.o.Deadline+lateFor), asks)
}

// recovered turns a panic into an error: on a goroutine of this package nobody else could recover
// from it.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the store panicked: %v", p)
	}
}
