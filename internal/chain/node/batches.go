package node

import (
	"sync"
	"time"

	"tidegate.dev/tidegate/internal/chain"
)

// batches are the calls for a server that are ready, and when they leave.
type batches struct {
	mu    sync.Mutex
	state batcher // under mu
	ready []ready // under mu
	alarm *time.Timer
	armed bool // under mu
}

// ready is a call that waits to be sent.
type ready struct {
	call  *call
	leave time.Duration // when it has to
}

// batch is calls that share a round trip.
type batch struct {
	calls []*call
	asks  []chain.Ask
}

// batched reports whether the calls of a stream share a round trip with others.
func (n *Node) batched(s *stream) bool {
	return n.most > 1 && s.traits&together != 0 && len(s.checks) == 1
}

// launchLocked has a call sent that is ready: with others if it can be, otherwise by
// itself.
func (n *Node) launchLocked(c *call, now time.Duration) {
	if !n.batched(c.stream) {
		c.ready = now
		go c.run()
	} else if s := c.stream.server; s.putLocked(c, now) {
		go s.runBatches()
	}
}

// putLocked adds a call to those that are ready, and reports whether a worker is needed.
func (s *server) putLocked(c *call, now time.Duration) bool {
	return s.put(c, min(c.stream.coalescer.leave, now+s.node.o.Deadline/8), now)
}

// put adds a call that is ready, and reports whether a worker is needed.
func (s *server) put(c *call, leave, now time.Duration) bool {
	b := &s.batches
	c.ready = max(leave, now)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ready = append(b.ready, ready{c, leave})
	return s.stepBatchLocked(batchEvent{kind: batchReady, now: now, leave: leave})
}

// stepBatchLocked lets the batcher take a step, and reports whether a worker is needed.
func (s *server) stepBatchLocked(e batchEvent) (send bool) {
	b := &s.batches
	b.state, send = b.state.step(e)
	if !send && !b.state.sending && b.state.ready > 0 && !b.armed {
		b.armed = true
		in := max(b.state.leave-e.now, s.node.o.Deadline/64)
		if b.alarm == nil {
			b.alarm = time.AfterFunc(in, s.batchDue)
		} else {
			b.alarm.Reset(in)
		}
	}
	return send
}

// batchDue is called when calls that are ready may have waited long enough.
func (s *server) batchDue() {
	s.batches.mu.Lock()
	s.batches.armed = false
	send := s.stepBatchLocked(batchEvent{kind: batchDue, now: s.node.now()})
	s.batches.mu.Unlock()
	if send {
		s.workBatches()
	}
}

// take moves a batch of ready calls to b.
func (s *server) take(to *batch) (more bool) {
	b := &s.batches
	b.mu.Lock()
	defer b.mu.Unlock()
	k := min(len(b.ready), b.state.most)
	to.calls = to.calls[:0]
	for _, r := range b.ready[:k] {
		to.calls = append(to.calls, r.call)
	}
	rest := copy(b.ready, b.ready[k:])
	clear(b.ready[rest:])
	b.ready = b.ready[:rest]
	var leave time.Duration
	for i, r := range b.ready {
		if i == 0 || r.leave < leave {
			leave = r.leave
		}
	}
	return s.stepBatchLocked(batchEvent{kind: batchTaken, now: s.node.now(), n: k, leave: leave})
}

// batchBack is told that a batch has its replies, and reports whether there is another to
// be sent.
func (s *server) batchBack() bool {
	s.batches.mu.Lock()
	defer s.batches.mu.Unlock()
	return s.stepBatchLocked(batchEvent{kind: batchReplied, now: s.node.now()})
}
