package node

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
)

// release is slots that are to be given back. Slots have names, so a release can be repeated
// even if it is not known whether the last try succeeded.
type release struct {
	taken  tidegate.Receipt
	checks []tidegate.Check // with negative costs
	until  time.Duration    // when the leases run out by themselves
	after  time.Duration    // when it may be tried again
	tries  int              // how often a working server refused it
}

// maxReleasePause is the longest pause until a release that the server refuses is tried again.
const maxReleasePause = 5 * time.Second

// putOff schedules the next try of a release that failed with err.
func (r *release) putOff(now time.Duration, err error) {
	r.after = now + jitter(postPause)
	if showsLife(err) {
		r.tries++
		r.after = now + jitter(min(postPause<<min(r.tries, 10), maxReleasePause))
	}
}

// maxReleases bounds how many are kept. Further slots stay taken until their leases run out.
const maxReleases = 1 << 14

// slotsOf returns the checks that give back the slots among checks, which were taken or were
// to be given back, and the longest of their leases.
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

// releaseLater queues the slots among checks to be given back, under the name in taken, as soon
// as the server answers.
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
	s.releases = append(s.releases, release{taken: taken, checks: slots, until: n.now() + lease})
	s.freeLocked()
	select {
	case s.arrived <- struct{}{}:
	default:
	}
}

// giveUpLocked queues a release of the slots that a call asks for, because nobody waits for them
// any more. If the release arrives before the call, the backend refuses the call.
func (n *Node) giveUpLocked(c *call) {
	if c.name.IsZero() || c.givenUp {
		return
	}
	c.givenUp = true
	n.giveBack(tidegate.Receipt{Handle: c.name}, c.stream.checks, int64(c.stream.copies))
}

// giveBack queues releases of the slots of all copies.
func (n *Node) giveBack(taken tidegate.Receipt, checks []tidegate.Check, copies int64) {
	for i := range min(copies, maxReleases) {
		n.releaseEach(taken.Copy(i), checks)
	}
}

// releaseEach calls releaseLater for each server, with its slots.
func (n *Node) releaseEach(taken tidegate.Receipt, checks []tidegate.Check) {
	target, where := n.serversFor(checks, nil)
	if target != n.multi {
		target.releaseLater(taken, checks)
		return
	}
	for i, s := range where {
		if slices.Index(where, s) == i {
			s.releaseLater(taken, partOf(checks, where, s))
		}
	}
}

// freeLocked starts free, unless it runs already or the server does not answer.
func (s *server) freeLocked() {
	if s.freeing || s.node.closed || len(s.releases) == 0 || !s.circuit.answers() {
		return
	}
	s.freeing = true
	s.node.stopped.Go(s.free)
}

// freeKept starts to give back slots that were kept while the server did not answer.
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
		due, wait := s.dueLocked()
		if len(due)+len(s.releases) == 0 || !s.circuit.answers() {
			s.releases = append(due, s.releases...)
			s.freeing = false
			n.mu.Unlock()
			return
		}
		s.releasing = due
		n.mu.Unlock()
		if len(due) > 0 {
			again := s.freeAll(due)
			n.mu.Lock()
			s.releases, s.releasing = append(s.releases, again...), nil
			n.mu.Unlock()
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-s.arrived:
		case <-n.stop:
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// dueLocked takes out the releases that can be tried now, and drops those whose leases have
// run out. wait is how long it is until another can be tried.
func (s *server) dueLocked() (due []release, wait time.Duration) {
	now := s.node.now()
	wait = maxReleasePause
	var rest []release
	for _, r := range s.releases {
		switch {
		case now >= r.until:
		case now >= r.after:
			due = append(due, r)
		default:
			rest = append(rest, r)
			wait = min(wait, r.after-now)
		}
	}
	s.releases = rest
	return due, wait
}

// releasers is how many calls freeAll makes at the same time.
const releasers = 64

// freeAll gives slots back, and returns what is to be tried again. After the server has failed
// to answer once, it does not begin the remaining ones.
func (s *server) freeAll(all []release) (again []release) {
	var (
		mu   sync.Mutex // over again
		next atomic.Int64
		stop atomic.Pointer[error]
		work sync.WaitGroup
	)
	for range min(releasers, len(all)) {
		work.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(all)); i = next.Add(1) - 1 {
				r := all[i]
				err := error(nil)
				if why := stop.Load(); why != nil {
					err = *why
				} else if err = s.freeOne(&r); err == nil {
					continue
				} else if !showsLife(err) {
					stop.Store(&err)
				}
				r.putOff(s.node.now(), err)
				mu.Lock()
				again = append(again, r)
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
	return s.callInnerBy(context.Background(), innerCall{until: until, aside: true}, func(ctx context.Context) error { return n.inner.Adjust(ctx, taken, checks) })
}
