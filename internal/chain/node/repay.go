package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
)

// How the backlog is posted: all that there is, many calls at a time, so that it is done
// well before keys that were counted locally go back to the backend; see heldFor. Each
// call is for one counter.
const (
	postEvery    = 10 * time.Millisecond  // half to one and a half of it
	maxPosts     = 1 << 13                // before looking at the circuit again
	postWithin   = 10                     // deadlines
	posters      = 512                    // calls at a time
	maxTries     = 600                    // a minute
	enoughFailed = 8                      // posts of a round, if no more were charged, for the rest not to be begun
	postPause    = 100 * time.Millisecond // after one that failed
)

// owe adds copies of checks that were admitted locally to the backlog.
func (n *Node) owe(checks []tidegate.Check, copies int64) {
	nodes := n.nodes()
	n.owePart(checks, n.localPart(checks, nodes), copies, nodes, n.now())
}

// owePart adds what the checks of p were charged locally to the backlog.
func (n *Node) owePart(checks []tidegate.Check, p *part, copies, nodes int64, now time.Duration) {
	for i, at := range p.from {
		c := &checks[at]
		if c.Cost == 0 || c.Advisory && p.checks[i].Over || c.Limit.Algorithm == tidegate.Concurrency {
			continue
		}
		n.serverOf(c).owe(c, c.Cost*copies, p.checks[i].Cost*copies, nodes, now)
	}
}

// owe adds what was admitted for c, of which charged was charged locally, to the backlog.
func (s *server) owe(c *tidegate.Check, admitted, charged, nodes int64, now time.Duration) {
	n := s.node
	n.mu.Lock()
	defer n.mu.Unlock()
	var used int64
	if s.backlog.debts[counterOf(c)] == nil {
		used, _ = n.localUse(c.Limit, c.Key)
	}
	s.backlog.owe(c, admitted, charged, used, nodes, now)
	if len(s.backlog.debts) > 0 {
		s.repayLocked()
	}
}

// reckonedLocked is until when debts fade.
func (s *server) reckonedLocked(now time.Duration) time.Duration {
	if s.circuit.state == Degraded {
		return now
	}
	return s.reachable
}

// repayLocked sees to it that repay runs.
func (s *server) repayLocked() {
	if s.repaying || s.node.closed {
		return
	}
	s.repaying = true
	s.node.stopped.Go(s.repay)
}

// repay probes the server until it is well, and posts what it is owed. It is the one
// goroutine for a server beside calls, and ends when there is nothing left to do.
func (s *server) repay() {
	n := s.node
	next := n.now() + jitter(postEvery)
	told := OK
	for {
		s.moved()
		if s.tick() == probe {
			s.probe()
		}
		s.post(&next)
		s.freeKept()
		if state := s.state(); state != told {
			told = state
			n.tell()
		}
		wait, done := s.idle(told, next)
		if done {
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-n.stop:
			timer.Stop()
			return
		}
	}
}

func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d) }

func (s *server) tick() action {
	s.node.mu.Lock()
	defer s.node.mu.Unlock()
	return s.stepCircuitLocked(event{kind: tick, now: s.node.now()}, nil)
}

func (s *server) state() State {
	s.node.mu.Lock()
	defer s.node.mu.Unlock()
	return s.circuit.state
}

// tell says how the Node is doing, after a change.
func (n *Node) tell() {
	if n.o.OnState != nil {
		n.telling.Lock()
		defer n.telling.Unlock()
		n.o.OnState(n.Health())
	}
}

// idle is how long there is nothing to do; done means for good. told is the state that
// was last told of, next when the next debts are posted.
func (s *server) idle(told State, next time.Duration) (wait time.Duration, done bool) {
	n := s.node
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.now()
	state := s.circuit.state
	if state != told {
		return 0, false
	}
	owing := s.backlog.some() && s.circuit.answers()
	holding := s.held.over(now)
	n.easeLocked()
	switch wait = s.circuit.wake(now); {
	case owing && state == OK:
		wait = max(next-now, time.Millisecond)
	case owing:
		wait = min(wait, max(next-now, time.Millisecond))
	case state == OK && holding > 0:
		wait = holding
	case state == OK:
		s.repaying = false
		return 0, true
	}
	return wait, false
}

// probe asks the server something and tells the circuit.
func (s *server) probe() {
	n := s.node
	err := s.touch()
	e := event{kind: answered}
	if err != nil && !errors.Is(err, tidegate.ErrCannotAsk) { // which is an answer
		e.kind = unanswered
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	e.now = n.now()
	s.stepCircuitLocked(e, err)
}

// post posts the backlog, if the server answers and it is time. What could not be posted
// is tried again until it has faded or was tried too often.
func (s *server) post(when *time.Duration) {
	n := s.node
	n.mu.Lock()
	now := n.now()
	if n.gone { // it is posted by a successor
		*when = now + postPause
	}
	if !s.circuit.answers() || now < *when {
		n.mu.Unlock()
		return
	}
	posts := s.backlog.take(maxPosts, now, s.reckonedLocked(now))
	s.backlog.sending = posts
	n.mu.Unlock()
	again := s.postAll(posts)
	*when = n.now() + jitter(postEvery)
	if len(again) > 0 {
		*when = n.now() + jitter(postPause)
	}
	n.mu.Lock()
	s.backlog.sending = nil
	s.backlog.putBack(again, n.now())
	n.mu.Unlock()
}

// postAll posts debts and returns those that are still owed. One that cannot be posted is
// not in the way of others; when most fail for reasons that are not their own, those that
// were not begun are not.
func (s *server) postAll(posts []post) (again []post) {
	var (
		mu   sync.Mutex // over again
		next atomic.Int64
		good atomic.Int64
		bad  atomic.Int64
		all  sync.WaitGroup
	)
	work := func() {
		for {
			i := int(next.Add(1) - 1)
			if i >= len(posts) {
				return
			}
			p := &posts[i]
			if n := bad.Load(); n < enoughFailed || n <= good.Load() {
				err := s.postOne(p)
				if err == nil {
					good.Add(1)
					continue
				}
				if !errors.Is(err, tidegate.ErrCannotAsk) {
					bad.Add(1)
				}
				if errors.Is(err, errLost) {
					continue
				}
				p.debt.tries++
			}
			mu.Lock()
			again = append(again, *p)
			mu.Unlock()
		}
	}
	for range min(posters, len(posts)) {
		all.Go(work)
	}
	all.Wait()
	return again
}

// errLost is of a post that may have been charged and cannot be sent again.
var errLost = errors.New("nobody knows whether it was charged")

// postOne charges one debt, and counts what became of it.
func (s *server) postOne(p *post) error {
	n := s.node
	until := n.contexts.post.get(n, postWithin*n.o.Deadline) // nobody waits for it
	told := p.chainPost()
	err := s.reachBy(context.Background(), until, true, func(ctx context.Context) error { return n.charge(ctx, told) })
	switch {
	case err == nil:
		n.count.posted.Add(1)
	case unsure(err) && n.cannot.barred(p.debt.limit): // then it was not charged
		return fmt.Errorf("%w: %v", tidegate.ErrCannotAsk, err)
	case !n.chargesOnce.Load(): // a second time would be charged again
		if unsure(err) {
			n.mu.Lock()
			s.backlog.lost++
			n.mu.Unlock()
			return fmt.Errorf("%w: %w", errLost, err)
		}
	case mayHaveArrived(err):
		p.doubt = true
	}
	return err
}

// charge posts to the backend, or adjusts where that does not know posts.
func (n *Node) charge(ctx context.Context, p chain.Post) error {
	if n.chargesOnce.Load() {
		err := n.inner.Post(ctx, p)
		if !errors.Is(err, tidegate.ErrUnsupported) {
			return err
		}
		n.chargesOnce.Store(false)
	}
	return n.inner.Adjust(ctx, tidegate.Receipt{}, []tidegate.Check{p.Check})
}
