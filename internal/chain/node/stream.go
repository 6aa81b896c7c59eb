package node

import (
	"runtime"
	"sync"
	"time"

	"tidegate.dev/tidegate"
)

// stream is the calls for one vector of checks: those in flight, and the next one.
type stream struct {
	shard  *shard
	hash   uint64
	listed bool // under shard.mu: it is in shard.streams
	traits traits
	vector
	copies int // how many each waiter asks for

	server *server   // the server of all checks, or Node.multi if there are several
	where  []*server // the server of each check, if there are several

	coalescer coalescer // under shard.mu
	next      *call     // under shard.mu: not sent yet; nil means that nobody waits
	calls     int       // under shard.mu: calls that have not ended
	joined    int       // under shard.mu: how many waiters the last sent call had
}

// sole reports whether each call of the stream is for one request alone.
func (s *stream) sole() bool { return s.traits&coalescible == 0 }

// serversOf returns the servers that the calls of a stream go to.
func (n *Node) serversOf(s *stream) []*server {
	if s.server == n.multi {
		return s.where
	}
	return s.server.self[:]
}

// shards is how many shards there are; the hash of its vector says which one a stream is in.
const shards = 64

type shard struct {
	mu      sync.Mutex
	streams map[uint64]*stream // under mu: by the hash of their vectors
	last    *stream            // under mu: one of streams, the last that was found
	first   *call              // under mu: head of the list of all calls that have no reply or are still queued, the newest first
	asked   uint64             // under mu: requests that came here
	alarm   *time.Timer        // under mu: its function is ring; nil until it is first needed
	at      time.Duration      // under mu: when it rings; 0 means that it does not
	_       [8]byte            // so that no two shards share a cache line
}

// findLocked returns the stream that checks can join; nil means that there is none.
func (sh *shard) findLocked(hash uint64, checks []tidegate.Check, t traits) *stream {
	if t&coalescible == 0 {
		return nil
	}
	s := sh.last
	if s == nil || s.hash != hash {
		if s = sh.streams[hash]; s == nil {
			return nil
		}
		sh.last = s
	}
	if !same(s.checks, checks) {
		return nil
	}
	return s
}

// newStreamLocked returns a stream for checks. Others can join it if its traits allow that, and no
// other stream has its hash.
func (n *Node) newStreamLocked(sh *shard, hash uint64, checks []tidegate.Check, copies int, t traits) *stream {
	s := n.streams.Get().(*stream)
	s.shard, s.hash, s.traits, s.copies = sh, hash, t, copies
	s.copy(checks)
	s.server, s.where = n.serversFor(checks, s.where)
	if t&coalescible != 0 && sh.streams[hash] == nil {
		s.listed = true
		sh.streams[hash] = s
	}
	return s
}

// endLocked removes a stream without calls from its shard, and puts it into the pool.
func (n *Node) endLocked(s *stream) {
	if s.listed {
		delete(s.shard.streams, s.hash)
		if s.shard.last == s {
			s.shard.last = nil
		}
	}
	s.clear()
	clear(s.where)
	s.shard, s.server, s.listed, s.coalescer, s.joined = nil, nil, false, coalescer{}, 0
	n.streams.Put(s)
}

// newCallLocked makes the next call of a stream; nil means that too many are in flight.
func (n *Node) newCallLocked(s *stream) *call {
	if !s.server.begin() {
		return nil
	}
	c := n.calls.Get().(*call)
	if c.wake == nil {
		c.wake = make(chan struct{}, 1)
	}
	if cap(c.deadlines) < s.joined {
		c.deadlines = make([]time.Duration, 0, s.joined+s.joined/8)
	}
	c.stream, s.next = s, c
	s.calls++
	sh := s.shard
	c.newer, c.older = nil, sh.first
	if sh.first != nil {
		sh.first.newer = c
	}
	sh.first = c
	return c
}

// endCallLocked removes a call, which has its reply or was never sent, from its shard and its
// stream. The stream ends with its last call.
func (n *Node) endCallLocked(c *call) {
	s := c.stream
	sh := s.shard
	if s.next == c {
		s.next = nil
	}
	if c.newer == nil {
		sh.first = c.older
	} else {
		c.newer.older = c.older
	}
	if c.older != nil {
		c.older.newer = c.newer
	}
	c.newer, c.older = nil, nil
	s.server.inFlight.Add(-1)
	if c.overdue {
		s.server.overdue.Add(-1)
	}
	if s.calls--; s.calls == 0 {
		n.endLocked(s)
	}
}

// stepLocked lets a stream's coalescer take a step, and has the next call sent if it is
// ready.
func (n *Node) stepLocked(s *stream, e coalesceEvent) {
	var ready bool
	if s.coalescer, ready = s.coalescer.step(e); ready {
		n.launchLocked(s.next, e.now)
	}
}

// alarmLocked sets the alarm so that ring is called at an instant, or before.
func (n *Node) alarmLocked(sh *shard, at time.Duration) {
	if sh.at > 0 && sh.at <= at {
		return
	}
	now := n.now()
	in := max(at-now, 0)
	if sh.at = max(at, now); sh.alarm == nil {
		sh.alarm = time.AfterFunc(in, func() { n.ring(sh) })
	} else {
		sh.alarm.Reset(in)
	}
}

// ring handles what is due in a shard: waiters whose deadlines have passed, waiters that have to
// watch their contexts, calls that are overdue, and calls that have to leave.
func (n *Node) ring(sh *shard) {
	// Let goroutines with replies run first. How long that takes shows how late this process is.
	began := n.now()
	runtime.Gosched()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	// Handle what is due in a moment as well, so that no request waits beyond its deadline
	// and the alarm does not ring all the time.
	now, next := n.now()+n.o.Deadline/64, time.Duration(0)
	if sh.at > 0 {
		began = min(began, sh.at)
	}
	_ = n.lag.note(n.now()-began, now, n.o.Deadline)
	sh.at = 0
	at := func(t time.Duration) {
		if t > 0 && t <= now { // it is due but waits longer: it is only queued behind others
			t = now + n.o.Deadline/8
		}
		if t > 0 && (next == 0 || t < next) {
			next = t
		}
	}
	for c, older := sh.first, (*call)(nil); c != nil; c = older {
		older = c.older
		if c.done.Load() { // it was answered before it was sent, and only waits for a worker to take it out
			continue
		}
		s, longer := c.stream, n.longer(c, now)
		at(c.expireLocked(now - longer))
		if first := c.watchLocked(now - unwatched + n.o.Deadline); first > 0 {
			at(first - n.o.Deadline + unwatched)
		}
		switch {
		case c.sent && !c.overdue && now >= c.back+longer:
			n.overdueLocked(c, now)
		case c.sent && !c.overdue:
			at(c.back)
		case c == s.next && !s.coalescer.queued && s.coalescer.waiting > 0:
			n.stepLocked(s, coalesceEvent{kind: due, now: now})
			if !s.coalescer.queued {
				at(s.coalescer.leave)
			}
		}
	}
	if next > 0 {
		n.alarmLocked(sh, next)
	}
}

// overdueLocked notes that a call had no reply in time. The next call no longer waits for it.
func (n *Node) overdueLocked(c *call, now time.Duration) {
	c.overdue = true
	c.stream.server.overdue.Add(1)
	if q := n.queueOf(c.stream); c.windowed && q.step(batchEvent{kind: batchOverdue, now: now}) {
		go q.run()
	}
	if c.early || len(c.deadlines) == len(c.left) && c.late.undecided == 0 && c.late.admitted == 0 {
		n.failed(c.stream, n.late, c.stamp.at, 1) // no waiter has recorded it: see decideLateLocked
	}
	n.stepLocked(c.stream, coalesceEvent{kind: replied, now: now})
}
