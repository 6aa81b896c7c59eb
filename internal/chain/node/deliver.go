package node

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
)

// deliver gives those who wait for a call their answers. If the reply has none for some of
// them, it returns the call as rest, to be sent again for those. more means that the stream's
// queue needs a worker; overdue, that the call has left the window of its queue already.
func (n *Node) deliver(c *call, a *chain.Ask, err error) (rest *call, more, overdue bool) {
	if err == nil {
		err = a.Err
	}
	if err != nil {
		a.Granted, a.Rest = tidegate.Decision{}, tidegate.Decision{}
	}
	s := c.stream
	for _, at := range n.serversOf(s) {
		at.noteEnded()
	}
	sole := s.traits&coalescible == 0
	grant, refusal := a.Granted, &a.Rest
	switch {
	case sole || a.Granted.Granted <= 0:
		refusal = &a.Granted
	default:
		if grant.Granted = 1; a.Rest.Limit == nil {
			refusal = nil
		}
	}
	known := false
	if err == nil {
		for _, part := range s.where {
			part.replied.Store(int64(n.now()))
		}
		n.see(s.checks, &a.Granted, c.stamp.at)
		if n.unaskable.some.Load() {
			n.unaskable.answered(s.checks)
		}
		n.rememberBlock(c, &a.Granted)
		if refusal != nil && !refusal.OK {
			known = n.remember(c, refusal)
		}
	}
	n.deny.pass(c.stamp.at)

	sh := s.shard
	sh.mu.Lock()
	spare, uncharged := c.late.settleLocked(a.Granted.Granted, err)
	if uncharged > 0 {
		n.owe(s.checks, uncharged)
	}
	if err == nil && c.late.covered > 0 {
		c.late.grant = charged{a.Granted.Receipt, copied(s.checks)}
	}
	told, again := c.waiting(), false
	if sole {
		switch {
		case err != nil && mayHaveArrived(err):
			n.giveUpLocked(c)
		case err == nil:
			c.copyOver(s.checks)
			if told == 0 && a.Granted.OK && a.Granted.Receipt.Handle != c.name { // the backend has named the slots itself
				n.giveBack(a.Granted.Receipt, s.checks, a.Granted.Granted)
			}
		}
		c.conclude(refusal, err, true)
	} else {
		spare = c.serve(&grant, spare)
		again = err == nil && refusal == nil && c.waiting() > 0
		if again {
			told -= c.waiting()
		} else {
			c.conclude(refusal, err, true)
			if spare > 0 {
				spare = n.serveSentLocked(s, &grant, spare)
			}
			if s.next != nil && err == nil && (spare > 0 || known) {
				var more int
				more, spare = n.serveNextLocked(s.next, &grant, spare, refusal, known)
				told += more
			}
		}
	}
	if unused := min(spare, c.late.refused); unused > 0 {
		n.refund(charged{a.Granted.Receipt, s.checks}, unused)
	}
	if told > 1 {
		n.count.shared.Add(uint64(told))
	}
	if told == 0 && !c.overdue { // all have left
		told = 1
	}
	if told > 0 { // else it was counted when it was late
		n.record(s, err, c.stamp.at, told)
	}
	overdue = c.overdue && c.windowed
	if again {
		c.wakeAll()
		sh.mu.Unlock()
		return c, false, overdue
	}
	more = n.nextLocked(c)
	n.endCallLocked(c)
	sh.mu.Unlock()
	c.wakeAll() // without the lock: they want it for their next requests
	n.release(c)
	return nil, more, overdue
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

// serveSentLocked gives grants that are left over to those who wait for other calls of a
// stream that are out, the oldest first. So more is left over of the replies to those. It returns how many
// grants are left over still.
func (n *Node) serveSentLocked(s *stream, grant *tidegate.Decision, spare int64) int64 {
	for spare > 0 {
		var oldest *call
		for c := s.shard.first; c != nil; c = c.older {
			if c.stream == s && c.sent && !c.done.Load() && c.waiting() > 0 {
				oldest = c
			}
		}
		if oldest == nil {
			break
		}
		spare = oldest.serve(grant, spare)
		oldest.wakeAll()
	}
	return spare
}

// serveNextLocked gives those who wait for the next call the grants that are left over, and the
// refusal to the rest of them if it is known, which is to say that they would find it remembered.
// It returns how many have an answer, and how many grants are left over still.
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

// copyOver writes into the caller's checks which of the advisory ones were over.
func (c *call) copyOver(from []tidegate.Check) {
	for i := range c.sole {
		if c.sole[i].Advisory {
			c.sole[i].Over = from[i].Over
		}
	}
}

// release is called by the worker, and by the waiter of a call that had only one. The second of
// these two calls lets it be used again. A call that had more waiters is left to the garbage collector.
func (n *Node) release(c *call) {
	if c.alone && c.releasedOnce.Swap(true) {
		c.reset()
		n.calls.Put(c)
	}
}
