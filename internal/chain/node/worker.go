package node

import (
	"fmt"
	"runtime"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
)

// workBatches sends batches until nobody waits for one. It first lets those run who are
// about to ask.
func (s *server) workBatches() {
	n := s.node
	b := n.batches.Get().(*batch)
	for again := true; again; {
		runtime.Gosched()
		if s.take(b) {
			go s.runBatches()
		}
		again = s.sendBatch(b)
		again = s.batchBack() || again
	}
	n.batches.Put(b)
}

// sendBatch asks the server for a batch and delivers the replies. It reports whether
// there is another to be sent that no other worker takes.
func (s *server) sendBatch(b *batch) (again bool) {
	n := s.node
	calls := b.calls[:0]
	b.asks = b.asks[:0]
	stamp := n.stamp()
	for _, c := range b.calls {
		if copies := n.send(c, stamp); copies > 0 {
			calls = append(calls, c)
			b.asks = append(b.asks, chain.Ask{Checks: c.stream.checks, Copies: copies})
		}
	}
	if len(calls) > 0 {
		err := s.exchange(b.asks, stamp.at)
		for i, c := range calls {
			rest, more := n.deliver(c, &b.asks[i], err)
			if rest != nil {
				go rest.run()
			}
			again = again || more
		}
	}
	clear(b.calls[:cap(b.calls)])
	clear(b.asks[:cap(b.asks)])
	return again
}

// work sends a call by itself, and then those of the same stream, as long as there are
// any.
func (n *Node) work(c *call) {
	for c != nil {
		stamp := n.stamp()
		copies := n.send(c, stamp)
		if copies == 0 {
			return
		}
		c.asks[0] = chain.Ask{Checks: c.stream.checks, Copies: copies, Handle: c.name}
		way := c.stream.server
		err := way.exchange(c.asks[:], stamp.at)
		next, more := n.deliver(c, &c.asks[0], err)
		if more {
			go way.runBatches()
		}
		c = next
	}
}

// send marks a call as sent and returns how many copies it asks for. If there is nobody
// left to ask for, the call ends.
func (n *Node) send(c *call, stamp stamp) (copies int) {
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
	c.sent, c.stamp, c.back, c.late = true, stamp, stamp.at+n.o.Deadline, late{}
	if s.traits&slotted != 0 {
		c.name = tidegate.NewHandle()
	}
	if c.lag = 0; !again {
		c.lag = n.lag.note(stamp.at-c.ready, stamp.at, n.o.Deadline)
	}
	if !again {
		s.next = nil
		s.coalescer, _ = s.coalescer.step(coalesceEvent{kind: sent, now: stamp.at})
	}
	n.alarmLocked(sh, c.back)
	return copies
}

// exchange asks the backend, once.
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
		if shows(asks[i].Err) {
			return true
		}
	}
	return false
}

func (n *Node) takeBatch(asks []chain.Ask) (err error) {
	defer recovered(&err)
	return n.inner.TakeBatch(n.contexts.late.get(n, n.o.Deadline+lateFor), asks)
}

// recovered turns a panic into an error: on a goroutine of ours nobody else could
// recover from it.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the store panicked: %v", p)
	}
}
