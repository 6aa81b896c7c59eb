package ledger

import (
	"math"
	"slices"
	"time"
)

// Node names a node.
type Node uint64

// Assignment is a strategy for a node.
type Assignment struct {
	Node Node
	Strategy
	// New means that the node gets a full bucket, which was paid for, or, if the Strategy denies,
	// that it was not denied before. Otherwise the last assignment is extended.
	New bool
}

// Ledger divides one limit. It is not safe for concurrent use.
type Ledger struct {
	limit Limit
	times Times
	ahead *Ahead // nil means paid by fund
	division

	opens  time.Duration   // every node is denied before this time
	at     time.Duration   // of the last event
	fund   float64         // tokens for new epochs
	scale  fleetScale      // used if ahead is set
	shares []*share        // of connected nodes, and of those with something outstanding
	nodes  map[Node]*share // connected ones
}

// New returns the ledger of a limit whose bucket is full at now. ahead is nil if the limit is
// counted in this process only.
func New(l Limit, t Times, ahead *Ahead, now time.Duration) *Ledger {
	return &Ledger{
		limit: l, times: t, ahead: ahead, division: l.divide(),
		opens: now, at: now, fund: float64(l.Burst), scale: fleetScale{part: 1, level: 1, was: 1, seen: -1, at: now}, nodes: make(map[Node]*share),
	}
}

// OpenAt makes the ledger deny until then and start with an empty bucket, because assignments of a
// predecessor may still be in use.
func (l *Ledger) OpenAt(then time.Duration) { l.opens, l.fund = then, 0 }

// Change replaces the limit. Assignments stay outstanding.
func (l *Ledger) Change(limit Limit, ahead *Ahead, now time.Duration) {
	l.advance(now)
	l.limit, l.ahead, l.division = limit, ahead, limit.divide()
	l.cap()
	for _, s := range l.shares {
		s.next = now
	}
}

// Report adds the requests of a node since its last report. An unknown node is new.
func (l *Ledger) Report(now time.Duration, node Node, requests uint64) {
	s := l.nodes[node]
	if s == nil {
		s = &share{node: node, next: now}
		l.shares = append(l.shares, s)
		l.nodes[node] = s
	}
	s.demand.report(now, requests)
}

// Close removes a node. Its assignments stay outstanding until they expire.
func (l *Ledger) Close(now time.Duration, node Node) {
	l.advance(now)
	if s := l.nodes[node]; s != nil {
		s.closed = true
		delete(l.nodes, node)
	}
	l.forget()
}

// Lost notes that an assignment was not sent. The one before may expire before the next one
// arrives, so the next one is not an extension.
func (l *Ledger) Lost(now time.Duration, node Node) {
	if s := l.nodes[node]; s != nil {
		s.now.free, s.next = 0, now
	}
}

// Idle reports whether l can be forgotten: no node, nothing outstanding, a full bucket.
func (l *Ledger) Idle(now time.Duration) bool {
	l.advance(now)
	l.forget()
	return len(l.shares) == 0 && now >= l.opens && (l.ahead != nil || l.fund >= float64(l.limit.Burst))
}

// Out returns what is outstanding: the rate in tokens per second, and the sum of the buckets' sizes.
func (l *Ledger) Out(now time.Duration) (perSecond float64, tokens int64) {
	l.advance(now)
	return l.out()
}

// advance brings the fund to now, and drops epochs that have ended. What expires between two events
// counts as outstanding until the second.
func (l *Ledger) advance(now time.Duration) {
	if now <= l.at {
		return
	}
	if now > l.opens {
		out, _ := l.out()
		t := now - max(l.at, l.opens)
		l.fund += max(l.limit.perSecond()-out, 0) * t.Seconds()
	}
	l.at = now
	l.cap() // before anything expires
	for _, s := range l.shares {
		s.expire(now)
	}
}

// cap limits the fund to what the burst leaves beside the outstanding tokens, which may be more
// than a burst that was lowered.
func (l *Ledger) cap() {
	_, tokens := l.out()
	l.fund = max(min(l.fund, float64(l.limit.Burst-tokens)), 0)
}

func (l *Ledger) out() (perSecond float64, tokens int64) {
	for _, s := range l.shares {
		perSecond += s.perSecond()
		tokens += s.tokens()
	}
	return perSecond, tokens
}

// forget drops the shares of nodes that are gone and have nothing outstanding.
func (l *Ledger) forget() {
	l.shares = slices.DeleteFunc(l.shares, func(s *share) bool { return s.closed && s.empty() })
}

// left returns the rate that the other shares leave to s, in tokens per interval.
func (l *Ledger) left(s *share) int64 {
	out, _ := l.out()
	left := l.limit.perSecond() - (out - s.perSecond())
	return max(min(l.fill, int64(math.Floor(left*l.interval.Seconds()+rounding))), 0)
}
