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

// lag is how late this process is with what it is about to do.
type lag struct {
	size  atomic.Int64 // when it was last found to be late
	until atomic.Int64 // for so long it is expected to be

	worst atomic.Int64 // the most of the last lagSpan
	span  atomic.Int64 // when worst was begun anew
}

// lagSpan is for how long it is remembered how late this process was. A server on the same
// machine is as late.
const lagSpan = time.Second

// note notes that something was done so much later than it was to be. It returns how much
// that is, if it is worth telling.
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

// now is how late this process is.
func (l *lag) now(now time.Duration) time.Duration {
	if int64(now) >= l.until.Load() {
		return 0
	}
	return time.Duration(l.size.Load())
}

// recent is how late this process was of late.
func (l *lag) recent(now time.Duration) time.Duration {
	if now-time.Duration(l.span.Load()) > lagSpan {
		return 0
	}
	return time.Duration(l.worst.Load())
}

// minQueue is how many calls of a server make a queue.
const minQueue = 32

// queued reports whether a call is only behind others: there is a queue without which the
// server takes much less than the deadline, or this process is late; and no server that the
// call is for is silent.
func (n *Node) queued(c *call, now time.Duration) bool {
	began := c.deadlines[0] - n.o.Deadline
	unsent := !c.sent && c.stream.coalescer.queued && now-c.ready >= n.o.Deadline/16
	return (unsent || n.behind(c.stream.server, began, now)) && !n.silent(n.serversOf(c.stream), began, now)
}

// behind reports whether what was asked of a server from began on may be behind others.
func (n *Node) behind(s *server, began, now time.Duration) bool {
	return n.lag.now(now) > 0 || s.queuedSince(began)
}

// heardDeadlines is for how many deadlines a server may be silent that was heard since a
// request came: it was there, and has much to do.
const heardDeadlines = 4

// silent reports whether one of servers has said nothing for the deadline and as long as this
// process was late, or for heardDeadlines if it was heard since began. One whose circuit is
// open is.
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

// longer is how much longer than their deadlines those who wait for a call do.
func (n *Node) longer(c *call, now time.Duration) time.Duration {
	switch {
	case n.queued(c, now):
		return n.maxQueueing(now)
	case c.sent: // the server has not had its time yet
		return min(c.lag, maxQueueing)
	}
	return 0
}

// maxQueueing is how much longer than its deadline a request waits at most.
func (n *Node) maxQueueing(now time.Duration) time.Duration {
	return min(maxQueueing+n.lag.recent(now), lateFor)
}

// silence is for how long the server has said nothing while a call waited for its reply.
func (s *server) silence(now time.Duration) time.Duration {
	n := s.node
	heard, written := n.inner.Heard(s.number)
	asked, last := time.Duration(s.asked.Load()), max(time.Duration(s.replied.Load()), heard.Sub(n.start))
	if asked >= last { // what it was asked may have left this process only later
		last = max(asked, written.Sub(n.start))
	}
	return now - last
}

// heardSince reports whether the server has said anything since then.
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

// queuedSince reports whether there was a queue of calls at some time since then, and calls
// are quick without one.
func (s *server) queuedSince(since time.Duration) bool {
	return s.near.Load() && time.Duration(s.queue.Load()) >= since
}
