package node

import (
	"sync/atomic"
	"time"
)

// A request that has no answer by its deadline has either met a server that is slow or gone,
// or is queued behind others: in this process, which has more to do than processors to do it
// on, or in the server, behind what a burst has sent before it. The latter is no fault of the
// server, and the answer is on its way: deciding without it would be wrong, and no quicker.
// So such a request waits on, for as long as the server is not silent.

// maxQueueing bounds how much longer than its deadline a request waits, beside what this
// process is late.
const maxQueueing = lateFor / 2

// lag measures how late this process is in doing what is due.
type lag struct {
	size  atomic.Int64 // how late it was when last measured
	until atomic.Int64 // until when it is expected to stay that late

	worst atomic.Int64 // the most within lagSpan
	span  atomic.Int64 // when worst was last set
}

// lagSpan is how long the worst lag is remembered: a server on the same machine may be as late.
const lagSpan = time.Second

// note notes that something was done late by so much. It returns late, or 0 if that is too little to
// matter.
func (l *lag) note(late, now, deadline time.Duration) time.Duration {
	if late < deadline/16 {
		return 0
	}
	if span := time.Duration(l.span.Load()); now-span > lagSpan || int64(late) > l.worst.Load() {
		l.worst.Store(int64(late))
		l.span.Store(int64(now))
	}
	if int64(now+2*late) > l.until.Load() {
		l.size.Store(int64(late))
		l.until.Store(int64(now + 2*late))
	}
	return late
}

// now returns how late this process is now.
func (l *lag) now(now time.Duration) time.Duration {
	if int64(now) >= l.until.Load() {
		return 0
	}
	return time.Duration(l.size.Load())
}

// recent returns the worst lag of the last lagSpan.
func (l *lag) recent(now time.Duration) time.Duration {
	if now-time.Duration(l.span.Load()) > lagSpan {
		return 0
	}
	return time.Duration(l.worst.Load())
}

// minQueue is how many calls of a server make a queue.
const minQueue = 32

// queued reports whether a call is only queued behind others: either this process is late, or there is
// a queue at a server that is quick without one; and no server of the call is silent.
func (n *Node) queued(c *call, now time.Duration) bool {
	began := c.deadlines[0] - n.o.Deadline
	unsent := !c.sent && c.stream.coalescer.queued && now-c.ready >= n.o.Deadline/16
	return (unsent || n.behind(c.stream.server, began, now)) && !n.silent(n.serversOf(c.stream), began, now)
}

// behind reports whether a call of a server that began at began may be queued behind others.
func (n *Node) behind(s *server, began, now time.Duration) bool {
	return n.lag.now(now) > 0 || s.queuedSince(began)
}

// heardDeadlines is for how many deadlines a server may be silent if it was heard since a request
// came: it is there, and only has much to do.
const heardDeadlines = 4

// silent reports whether one of servers has an open circuit, or has said nothing for the deadline
// plus the recent lag of this process. A server that was heard since began has heardDeadlines
// deadlines instead of one.
func (n *Node) silent(servers []*server, began, now time.Duration) bool {
	for _, s := range servers {
		most := n.o.Deadline + n.lag.recent(now)
		if s.heardSince(began) {
			most += (heardDeadlines - 1) * n.o.Deadline
		}
		if s.share.Load() == 0 || s.silence(now) >= most {
			return true
		}
	}
	return false
}

// longer returns how much longer than their deadlines the waiters of a call wait.
func (n *Node) longer(c *call, now time.Duration) time.Duration {
	switch {
	case n.queued(c, now):
		return n.maxQueueing(now)
	case c.sent: // the server has not had its time yet
		return min(c.lag, maxQueueing)
	}
	return 0
}

// maxQueueing returns the most by which a queued request may exceed its deadline.
func (n *Node) maxQueueing(now time.Duration) time.Duration {
	return min(maxQueueing+n.lag.recent(now), lateFor)
}

// silence returns for how long the server has said nothing while a call waited for its reply.
func (s *server) silence(now time.Duration) time.Duration {
	n := s.node
	heard, written := n.inner.Heard(s.number)
	asked, last := time.Duration(s.asked.Load()), max(time.Duration(s.replied.Load()), heard.Sub(n.start))
	if asked >= last { // what it was asked may have left this process only later
		last = max(asked, written.Sub(n.start))
	}
	return now - last
}

// heardSince reports whether the server has said anything after since.
func (s *server) heardSince(since time.Duration) bool {
	heard, _ := s.node.inner.Heard(s.number)
	return time.Duration(s.replied.Load()) > since || heard.Sub(s.node.start) > since
}

// noteAsked notes that the server is asked something. If no call waited for its reply, one
// does from now on.
func (s *server) noteAsked(now time.Duration) {
	if s.pending.Add(1) == 1 {
		s.asked.Store(int64(now))
	}
}

// noteEnded notes that something the server was asked has ended, replied to or not.
func (s *server) noteEnded() { s.pending.Add(-1) }

// queuedSince reports whether there was a queue of calls at or after since, at a server that is quick
// without one.
func (s *server) queuedSince(since time.Duration) bool {
	return s.near.Load() && time.Duration(s.queue.Load()) >= since
}
