package node

import (
	"runtime"
	"sync"
	"time"

	"tidegate.dev/tidegate/internal/chain"
)

// sendQueue holds the calls that are ready to be sent to a server; its batcher decides when they
// leave. A server has two: one for calls that share round trips, one for calls that are sent alone.
type sendQueue struct {
	server *server
	most   int    // calls in a batch, at most
	run    func() // work, made once

	mu     sync.Mutex
	state  batcher       // under mu
	ready  []ready       // under mu
	called time.Duration // under mu: when stepLocked last asked for a worker
	alarm  *time.Timer   // under mu: nil until it is first needed
	at     time.Duration // under mu: when alarm goes off; 0 means that it is not set
}

// ready is a call that waits to be sent.
type ready struct {
	call        *call
	leave, last time.Duration // when it is to be sent if the window allows it, and when even if not
}

// batch is calls that share a round trip.
type batch struct {
	calls []*call
	asks  []chain.Ask
	lag   time.Duration // how long after the queue had asked for a worker one took the batch
}

func (q *sendQueue) init(s *server, most, least int) {
	q.server, q.most, q.run = s, most, q.work
	q.state = batcher{most: most, least: least, window: least}
}

// queueOf returns the queue that the calls of a stream are sent from.
func (n *Node) queueOf(s *stream) *sendQueue {
	if n.most > 1 && !s.sole() && len(s.checks) == 1 {
		return &s.server.batches
	}
	return &s.server.alone
}

// launchLocked queues a call that is ready, and starts a worker if one is needed. The lock is that
// of the call's shard.
func (n *Node) launchLocked(c *call, now time.Duration) {
	if q := n.queueOf(c.stream); q.putLocked(c, now) {
		go q.run()
	}
}

// putLocked adds a call that is ready, and reports whether a worker is needed. The caller holds
// the lock of the call's shard; putLocked itself takes mu.
func (q *sendQueue) putLocked(c *call, now time.Duration) bool {
	last := c.stream.coalescer.leave
	leave := min(last, now+q.server.node.o.Deadline/8)
	c.ready = max(last, now)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ready = append(q.ready, ready{c, leave, last})
	return q.stepLocked(batchEvent{kind: batchReady, now: now, leave: leave, last: last})
}

// stepLocked lets the batcher take a step, and reports whether a worker is needed. If not, it
// sets the alarm for calls that wait.
func (q *sendQueue) stepLocked(e batchEvent) (send bool) {
	q.state, send = q.state.step(e)
	if send {
		q.called = e.now
		return true
	}
	if q.state.sending || q.state.ready == 0 {
		return false
	}
	at := max(q.state.wake(), e.now+q.server.node.o.Deadline/64)
	if at == neverWaking || q.at > 0 && q.at <= at {
		return false
	}
	q.at = at
	if q.alarm == nil {
		q.alarm = time.AfterFunc(at-e.now, q.due)
	} else {
		q.alarm.Reset(at - e.now)
	}
	return false
}

// step is stepLocked for callers that do not hold mu.
func (q *sendQueue) step(e batchEvent) (send bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.stepLocked(e)
}

// due is called when the alarm goes off: calls that are ready may have waited long enough.
func (q *sendQueue) due() {
	q.mu.Lock()
	q.at = 0
	send := q.stepLocked(batchEvent{kind: batchDue, now: q.server.node.now()})
	q.mu.Unlock()
	if send {
		q.work()
	}
}

// take moves ready calls, at most a batch, to the batch of a worker. It reports whether those
// that are left need another worker.
func (q *sendQueue) take(to *batch) (more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.server.node.now()
	k := min(len(q.ready), q.most)
	to.calls, to.lag = to.calls[:0], now-q.called
	for _, r := range q.ready[:k] {
		to.calls = append(to.calls, r.call)
	}
	rest := copy(q.ready, q.ready[k:])
	clear(q.ready[rest:])
	q.ready = q.ready[:rest]
	e := batchEvent{kind: batchTaken, now: now, n: k}
	for i, r := range q.ready {
		if i == 0 || r.leave < e.leave {
			e.leave = r.leave
		}
		if i == 0 || r.last < e.last {
			e.last = r.last
		}
	}
	return q.stepLocked(e)
}

// work sends batches until no call is ready. It first yields to goroutines that are about
// to make one ready.
func (q *sendQueue) work() {
	n := q.server.node
	b := n.batches.Get().(*batch)
	for again := true; again; {
		if q.most > 1 {
			runtime.Gosched()
		}
		if q.take(b) {
			go q.run()
		}
		again = q.send(b)
	}
	n.batches.Put(b)
}

// send asks the server for a batch and delivers the replies. It reports whether this
// worker has to send another batch.
func (q *sendQueue) send(b *batch) (again bool) {
	s, n := q.server, q.server.node
	calls := b.calls[:0]
	b.asks = b.asks[:0]
	stamp := n.stamp()
	lag := n.lag.note(b.lag, stamp.at, n.o.Deadline)
	for _, c := range b.calls {
		if copies := n.send(c, stamp, lag); copies > 0 {
			calls = append(calls, c)
			b.asks = append(b.asks, chain.Ask{Checks: c.stream.checks, Copies: copies, Handle: c.name})
		}
	}
	back := batchEvent{kind: batchReplied, n: len(b.calls)}
	if len(calls) > 0 {
		err := s.exchange(b.asks, stamp.at)
		back.speed = s.speed(n.now() - stamp.at)
		for i, c := range calls {
			rest, more, overdue := n.deliver(c, &b.asks[i], err)
			if rest != nil {
				go rest.run()
			}
			if again = again || more; overdue {
				back.n--
			}
		}
	}
	clear(b.calls[:cap(b.calls)])
	clear(b.asks[:cap(b.asks)])
	back.now = n.now()
	return q.step(back) || again
}
