package node

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
)

// release is slots that are to be given back. Slots have names, so that it can be tried
// again, whatever became of the try before.
type release struct {
	taken  tidegate.Receipt
	checks []tidegate.Check // with negative costs
	until  time.Duration    // when the leases have run out by themselves
}

// maxReleases bounds how many are kept. Leases beyond run out by themselves.
const maxReleases = 1 << 14

// slotsOf are the slots among checks that were taken, or given back, as they are given
// back.
func slotsOf(checks []tidegate.Check) (slots []tidegate.Check, lease time.Duration) {
	for _, c := range checks {
		if c.Limit.Algorithm != tidegate.Concurrency || c.Cost == 0 {
			continue
		}
		if c.Cost > 0 {
			c.Cost = -c.Cost
		}
		slots = append(slots, c)
		lease = max(lease, c.Limit.Period)
	}
	return copied(slots), lease
}

// releaseLater has the slots among checks given back under the name taken, as soon as the
// server answers.
func (s *server) releaseLater(taken tidegate.Receipt, checks []tidegate.Check) {
	n := s.node
	slots, lease := slotsOf(checks)
	if len(slots) == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(s.releases) >= maxReleases {
		return
	}
	s.releases = append(s.releases, release{taken, slots, n.now() + lease})
	s.freeLocked()
}

// giveUpLocked has the slots given back that a call asks for, and that nobody waits for any
// more. That may arrive first: then the backend refuses the call.
func (n *Node) giveUpLocked(c *call) {
	if c.name.IsZero() || c.givenUp {
		return
	}
	c.givenUp = true
	n.giveBack(tidegate.Receipt{Handle: c.name}, c.stream.checks, int64(c.stream.copies))
}

// giveBack has the slots of all copies given back.
func (n *Node) giveBack(taken tidegate.Receipt, checks []tidegate.Check, copies int64) {
	for i := range min(copies, maxReleases) {
		n.releaseEach(taken.Copy(i), checks)
	}
}

// releaseEach is releaseLater of the slots of every server.
func (n *Node) releaseEach(taken tidegate.Receipt, checks []tidegate.Check) {
	way, where := n.wayTo(checks, nil)
	if way != n.several {
		way.releaseLater(taken, checks)
		return
	}
	for i, s := range where {
		if slices.Index(where, s) == i {
			s.releaseLater(taken, partOf(checks, where, s))
		}
	}
}

// freeLocked sees to it that free runs, if the server answers.
func (s *server) freeLocked() {
	if s.freeing || s.node.closed || len(s.releases) == 0 || !s.circuit.answers() {
		return
	}
	s.freeing = true
	s.node.stopped.Go(s.free)
}

// freeKept has slots given back that were kept while the server did not answer.
func (s *server) freeKept() {
	s.node.mu.Lock()
	defer s.node.mu.Unlock()
	s.freeLocked()
}

// free gives slots back until none are left, or the server does not answer.
func (s *server) free() {
	n := s.node
	for {
		n.mu.Lock()
		all := s.releases
		if len(all) == 0 || !s.circuit.answers() {
			s.freeing = false
			n.mu.Unlock()
			return
		}
		s.releases, s.releasing = nil, all
		n.mu.Unlock()
		again := s.freeAll(all)
		n.mu.Lock()
		s.releases, s.releasing = append(again, s.releases...), nil
		n.mu.Unlock()
		if len(again) == 0 {
			continue
		}
		timer := time.NewTimer(jitter(postPause))
		select {
		case <-timer.C:
		case <-n.stop:
			timer.Stop()
			return
		}
	}
}

// releasers is how many calls of freeAll are out at a time.
const releasers = 64

// freeAll gives slots back and returns what is to be tried again. After one that failed for
// a reason that is not its own, those that were not begun are not.
func (s *server) freeAll(all []release) (again []release) {
	var (
		mu   sync.Mutex // over again
		next atomic.Int64
		stop atomic.Bool
		work sync.WaitGroup
	)
	for range min(releasers, len(all)) {
		work.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(all)); i = next.Add(1) - 1 {
				r := &all[i]
				if s.node.now() >= r.until {
					continue
				}
				if !stop.Load() {
					err := s.freeOne(r)
					if err == nil {
						continue
					}
					stop.CompareAndSwap(false, !shows(err))
				}
				mu.Lock()
				again = append(again, *r)
				mu.Unlock()
			}
		})
	}
	work.Wait()
	return again
}

func (s *server) freeOne(r *release) error {
	n := s.node
	until := n.contexts.post.get(n, postWithin*n.o.Deadline) // nobody waits for it
	taken, checks := r.taken, r.checks
	return s.reachBy(context.Background(), until, true, func(ctx context.Context) error { return n.inner.Adjust(ctx, taken, checks) })
}
