package node

import (
	"sync/atomic"
	"time"
)

// A request that is not answered by its deadline has either met a server that is slow or
// gone, or stands behind others: in this process, which has more to do than processors to
// do it on, or in the connection, behind what a burst has sent before it. The latter is no
// fault of the server, and the answer is on its way: deciding without it would be wrong,
// and no quicker. So such a request waits for longer.

// maxQueueing bounds how much longer than its deadline a request waits.
const maxQueueing = lateFor / 2

// lag is how late this process is with what it is about to do.
type lag struct {
	size  atomic.Int64 // when it was last found to be late
	until atomic.Int64 // for so long it is expected to be
}

// note notes that something was done so much later than it was to be. It returns how much
// that is, if it is worth telling.
func (l *lag) note(late, now, deadline time.Duration) time.Duration {
	if late < deadline/16 {
		return 0
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

// aLine is how many calls of a server make a line.
const aLine = 32

// queued reports whether a call stands behind others: its server has said something since
// it was sent, and there is a line without which it takes much less than the deadline, or
// this process is late.
func (n *Node) queued(c *call, now time.Duration) bool {
	s := c.stream.server
	busy := n.lag.now(now) > 0
	if !c.sent {
		return busy
	}
	return (busy || s.lines(c.stamp.at)) && n.heard(c.stream, c.stamp.at)
}

// heard reports whether the servers of a stream have said anything since then: all of them,
// or the call may be waiting for the one that has not.
func (n *Node) heard(s *stream, since time.Duration) bool {
	if s.server != n.several {
		return s.server.heardSince(since)
	}
	for _, part := range s.where {
		if !part.heardSince(since) {
			return false
		}
	}
	return true
}

// heardSince reports whether the server has said anything since then.
func (s *server) heardSince(since time.Duration) bool {
	n := s.node
	return time.Duration(s.replied.Load()) > since || n.inner.Heard(s.number).Sub(n.start) > since
}

// longer is how much longer than their deadlines those who wait for a call do.
func (n *Node) longer(c *call, now time.Duration) time.Duration {
	if n.queued(c, now) {
		return maxQueueing
	}
	late := 2 * n.lag.now(now)
	if c.sent { // the server has not had its time yet
		late += c.lag
	}
	return min(late, maxQueueing)
}

// lines reports whether there was a line of calls, at some time since then, and calls are
// quick without one.
func (s *server) lines(since time.Duration) bool {
	return s.near.Load() && time.Duration(s.lined.Load()) >= since
}
