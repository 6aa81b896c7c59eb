package node

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
)

// reply is what came back for a call.
type reply struct {
	whole   *tidegate.Decision // for all copies that were asked for
	grant   tidegate.Decision  // for each copy that is granted
	refusal *tidegate.Decision // for the other copies; nil if the reply does not tell
	known   bool               // the refusal is remembered
	err     error
}

// deliver gives the waiters of a call their answers. If the reply has none for some of them, it
// returns the call as rest, to be sent again for those. more means that the stream's queue needs
// a worker, and overdue that the call has left the window of its queue already.
func (n *Node) deliver(c *call, a *chain.Ask, err error) (rest *call, more, overdue bool) {
	s := c.stream
	for _, at := range n.serversOf(s) {
		at.noteEnded()
	}
	r := replyTo(s, a, err)
	if r.err == nil {
		n.learn(c, &r)
	}
	n.deny.pass(c.stamp.at)

	sh := s.shard
	sh.mu.Lock()
	told, again := n.answerLocked(c, &r)
	if told > 1 {
		n.count.shared.Add(uint64(told))
	}
	if told == 0 && !c.overdue { // all have left
		told = 1
	}
	if told > 0 { // else it was counted when it was late
		n.record(s, r.err, c.stamp.at, told)
	}
	overdue = c.overdue && c.windowed
	if again {
		c.windowed = false // the reply takes it out of the window; it may become overdue before it is sent again
		c.wakeAll()
		sh.mu.Unlock()
		return c, false, overdue
	}
	more = n.nextLocked(c)
	n.endCallLocked(c)
	sh.mu.Unlock()
	c.wakeAll() // without the lock, which waiters need for their next requests
	n.release(c)
	return nil, more, overdue
}

// replyTo reads a as the reply to a call of s. If there is an error, it clears the decisions of a.
func replyTo(s *stream, a *chain.Ask, err error) reply {
	if err == nil {
		err = a.Err
	}
	if err != nil {
		a.Granted, a.Rest = tidegate.Decision{}, tidegate.Decision{}
	}
	r := reply{whole: &a.Granted, grant: a.Granted, refusal: &a.Rest, err: err}
	switch {
	case s.sole() || a.Granted.Granted <= 0:
		r.refusal = &a.Granted
	default:
		if r.grant.Granted = 1; a.Rest.Limit == nil {
			r.refusal = nil
		}
	}
	return r
}

// learn remembers what the reply says about the counters of a call.
func (n *Node) learn(c *call, r *reply) {
	s := c.stream
	for _, part := range s.where {
		part.replied.Store(int64(n.now()))
	}
	n.see(s.checks, r.whole, c.stamp.at)
	if n.unaskable.some.Load() {
		n.unaskable.answered(s.checks)
	}
	n.rememberBlock(c, r.whole)
	if r.refusal != nil && !r.refusal.OK {
		r.known = n.remember(c, r.refusal)
	}
}

// answerLocked settles what was decided locally while the reply was late, and answers the waiters. It
// returns how many it has answered, and whether the call has to be sent again for the others.
func (n *Node) answerLocked(c *call, r *reply) (told int, again bool) {
	s := c.stream
	spare, uncharged := c.late.settleLocked(r.whole.Granted, r.err)
	if uncharged > 0 {
		n.addToBacklog(s.checks, uncharged)
	}
	if r.err == nil && c.late.covered > 0 {
		c.late.grant = charged{r.whole.Receipt, copied(s.checks)}
	}
	if s.sole() {
		told = n.answerSoleLocked(c, r)
	} else {
		told, spare, again = n.answerAllLocked(c, r, spare)
	}
	if unused := min(spare, c.late.refused); unused > 0 {
		n.refund(charged{r.whole.Receipt, s.checks}, unused)
	}
	return told, again
}

// answerSoleLocked gives the reply to the one caller that a call is for. told is 0 if that caller has
// left, otherwise 1.
func (n *Node) answerSoleLocked(c *call, r *reply) (told int) {
	told = c.waiting()
	switch s := c.stream; {
	case r.err != nil && mayHaveArrived(r.err):
		n.giveUpLocked(c)
	case r.err == nil:
		c.copyOver(s.checks)
		if told == 0 && r.whole.OK && r.whole.Receipt.Handle != c.name { // the backend has named the slots itself
			n.giveBack(r.whole.Receipt, s.checks, r.whole.Granted)
		}
	}
	c.conclude(r.refusal, r.err, true)
	return told
}

// answerAllLocked answers the waiters of a call. spare is how many grants there are for them; what they
// do not need goes to waiters of other calls of the stream, and so does a refusal that is known. It
// returns how many waiters were answered, how many grants are left over, and whether the call has to be
// sent again.
func (n *Node) answerAllLocked(c *call, r *reply, spare int64) (told int, rest int64, again bool) {
	s := c.stream
	told = c.waiting()
	rest = c.serve(&r.grant, spare)
	if r.err == nil && r.refusal == nil && c.waiting() > 0 {
		return told - c.waiting(), rest, true
	}
	c.conclude(r.refusal, r.err, true)
	if rest > 0 {
		rest = n.serveSentLocked(c, &r.grant, rest)
	}
	if s.next != nil && r.err == nil && (rest > 0 || r.known) {
		var more int
		more, rest = n.serveNextLocked(s.next, &r.grant, rest, r.refusal, r.known)
		told += more
	}
	return told, rest, false
}

// nextLocked tells the stream of a call that it has its reply. If that makes the next call
// ready, it puts that into its queue, and reports whether the queue needs a worker.
func (n *Node) nextLocked(c *call) (more bool) {
	s, now, ready := c.stream, n.now(), false
	if c.overdue {
		return false
	}
	s.coalescer, ready = s.coalescer.step(coalesceEvent{kind: replied, now: now})
	return ready && n.queueOf(s).putLocked(s.next, now)
}

// serveSentLocked gives spare grants of a call to waiters of other calls of its stream that are in flight,
// the oldest first. The replies to these calls then have grants to spare, of which as many are to be given
// back as would have been of this call. It returns how many are still left over.
func (n *Node) serveSentLocked(c *call, grant *tidegate.Decision, spare int64) int64 {
	for spare > 0 {
		var oldest *call
		for other := c.stream.shard.first; other != nil; other = other.older {
			if other.stream == c.stream && other.sent && !other.done.Load() && other.waiting() > 0 {
				oldest = other
			}
		}
		if oldest == nil {
			break
		}
		before := spare
		spare = oldest.serve(grant, spare)
		c.late.passLocked(&oldest.late, before-spare)
		oldest.wakeAll()
	}
	return spare
}

// serveNextLocked gives spare grants to the waiters of the next call, and the refusal to the others if
// it is known: a new request would find it in the deny cache. It returns how many waiters were
// answered, and how many grants are still left over.
func (n *Node) serveNextLocked(next *call, grant *tidegate.Decision, spare int64, refusal *tidegate.Decision, known bool) (answered int, rest int64) {
	s, before := next.stream, next.waiting()
	rest = next.serve(grant, spare)
	if !known && next.waiting() > 0 {
		told := before - next.waiting()
		s.coalescer.waiting -= told
		next.wakeAll()
		return told, rest
	}
	next.conclude(refusal, nil, false) // a worker may be about to take it
	next.wakeAll()
	queued := s.coalescer.queued
	s.coalescer, _ = s.coalescer.step(coalesceEvent{kind: served})
	if s.next = nil; !queued {
		n.endCallLocked(next)
	}
	return before, rest
}

// copyOver copies Over of the advisory checks into the caller's checks.
func (c *call) copyOver(from []tidegate.Check) {
	for i := range c.sole {
		if c.sole[i].Advisory {
			c.sole[i].Over = from[i].Over
		}
	}
}

// release is called by the worker and, if the call had a single waiter, by that waiter: the second of
// the two puts the call into the pool. A call that had more waiters is left to the garbage collector.
func (n *Node) release(c *call) {
	if c.alone && c.releasedOnce.Swap(true) {
		c.reset()
		n.calls.Put(c)
	}
}
