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
)

// How the backlog is posted: all that there is, many calls at a time, so that it is done
// well before keys that were counted locally go back to the backend; see heldFor. Each
// call is for one counter, so that one that fails puts no other in doubt.
const (
	postEvery  = 10 * time.Millisecond  // half to one and a half of it
	maxPosts   = 1 << 13                // before looking at the circuit again
	postWithin = 10                     // deadlines
	posters    = 512                    // calls at a time
	maxTries   = 600                    // a minute
	postPause  = 100 * time.Millisecond // after one that failed
)

// probing is what probes are charged to: an ordinary write, in case that only reading
// works, under several keys, in case that they live apart.
var probing = tidegate.MustLimit(tidegate.Spec{Name: "tidegate-probe", Algorithm: tidegate.TokenBucket, Events: 1000, Period: time.Second})

const probeKeys = 16

// owe adds copies of checks that were admitted locally to the backlog.
func (n *Node) owe(checks []tidegate.Check, copies int64) {
	nodes := n.nodes()
	n.owePart(checks, n.localPart(checks, nodes), copies, nodes, n.now())
}

// owePart adds what the checks of p were charged locally to the backlog.
func (n *Node) owePart(checks []tidegate.Check, p *part, copies, nodes int64, now time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, at := range p.from {
		c := &checks[at]
		if c.Cost == 0 || c.Advisory && p.checks[i].Over || c.Limit.Algorithm == tidegate.Concurrency {
			continue
		}
		var used int64
		if n.backlog.debts[counterOf(c)] == nil {
			used, _ = n.localUse(c.Limit, c.Key)
		}
		n.backlog.owe(c, c.Cost*copies, p.checks[i].Cost*copies, used, nodes, now)
	}
	if len(n.backlog.debts) > 0 {
		n.repayLocked()
	}
}

// reckonedLocked is until when debts fade.
func (n *Node) reckonedLocked(now time.Duration) time.Duration {
	if n.circuit.state == Degraded {
		return now
	}
	return n.reachable
}

// repayLocked sees to it that repay runs.
func (n *Node) repayLocked() {
	if n.repaying || n.closed {
		return
	}
	n.repaying = true
	n.stopped.Go(n.repay)
}

// repay probes the backend until it is well, and posts the backlog. It is the one
// goroutine of a Node beside calls, and ends when there is nothing left to do.
func (n *Node) repay() {
	next := n.now() + jitter(postEvery)
	told := OK
	for {
		if n.tick() == probe {
			n.probe()
		}
		n.post(&next)
		n.releaseAll()
		if h := n.Health(); h.State != told {
			told = h.State
			if n.o.OnState != nil {
				n.o.OnState(h)
			}
		}
		wait, done := n.idle(told, next)
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

func (n *Node) tick() action {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stepCircuitLocked(event{kind: tick, now: n.now()}, nil)
}

// idle is how long there is nothing to do; done means for good. told is the state that
// was last told of, next when the next debts are posted.
func (n *Node) idle(told State, next time.Duration) (wait time.Duration, done bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.now()
	state := n.circuit.state
	if state != told {
		return 0, false
	}
	owing := (len(n.backlog.debts) > 0 || len(n.releases) > 0) && n.circuit.answers()
	if len(n.backlog.debts) == 0 { // releases are tried again after a while
		next = now + postEvery
	}
	switch wait = n.circuit.wake(now); {
	case owing && state == OK:
		wait = max(next-now, time.Millisecond)
	case owing:
		wait = min(wait, max(next-now, time.Millisecond))
	case state == OK:
		n.repaying = false
		return 0, true
	}
	return wait, false
}

// probe asks the backend something and tells the circuit.
func (n *Node) probe() {
	key := fmt.Sprintf("%d", rand.IntN(probeKeys))
	err := n.reach(context.Background(), true, func(ctx context.Context) error {
		_, err := n.inner.Take(ctx, []tidegate.Check{{Key: key, Limit: probing, Cost: 1}}, 1)
		return err
	})
	n.count.probes.Add(1)
	e := event{kind: answered}
	if err != nil && !errors.Is(err, tidegate.ErrCannotAsk) { // which is an answer
		e.kind = unanswered
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	e.now = n.now()
	n.stepCircuitLocked(e, err)
}

// post posts the backlog, if the backend answers and it is time. An amount is sent once:
// what may have been charged is not sent again, what surely was not is owed still, until
// it has faded or was tried too often.
func (n *Node) post(when *time.Duration) {
	n.mu.Lock()
	now := n.now()
	if n.gone { // it is posted by a successor
		*when = now + postPause
	}
	if !n.circuit.answers() || now < *when {
		n.mu.Unlock()
		return
	}
	posts := n.backlog.take(maxPosts, now, n.reckonedLocked(now))
	n.mu.Unlock()
	again := n.postAll(posts)
	*when = n.now() + jitter(postEvery)
	if len(again) > 0 {
		*when = n.now() + jitter(postPause)
		n.mu.Lock()
		n.backlog.putBack(again, n.now())
		n.mu.Unlock()
	}
}

// postAll posts debts and returns those that are still owed. After one that failed for a
// reason that is not its own, those that were not begun are not.
func (n *Node) postAll(posts []post) (again []post) {
	var (
		mu   sync.Mutex // over again
		next atomic.Int64
		stop atomic.Bool
		all  sync.WaitGroup
	)
	work := func() {
		for {
			i := int(next.Add(1) - 1)
			if i >= len(posts) {
				return
			}
			p := posts[i]
			if !stop.Load() {
				err := n.postOne(p)
				if err == nil || unsure(err) {
					stop.CompareAndSwap(false, err != nil)
					continue
				}
				p.debt.tries++
				stop.CompareAndSwap(false, !errors.Is(err, tidegate.ErrCannotAsk))
			}
			mu.Lock()
			again = append(again, p)
			mu.Unlock()
		}
	}
	for range min(posters, len(posts)) {
		all.Go(work)
	}
	all.Wait()
	return again
}

// postOne charges one debt, and counts what became of it.
func (n *Node) postOne(p post) error {
	charge := []tidegate.Check{{Key: p.id.key, Limit: p.debt.limit, Cost: p.amount}}
	// Nobody waits for it, and what is not answered is lost.
	until := n.contexts.post.get(n, postWithin*n.o.Deadline)
	err := n.reachBy(context.Background(), until, true, func(ctx context.Context) error { return n.inner.Adjust(ctx, tidegate.Receipt{}, charge) })
	switch {
	case err == nil:
		n.count.posted.Add(1)
	case unsure(err) && n.cannot.barred(p.debt.limit): // then it was not charged
		return fmt.Errorf("%w: %v", tidegate.ErrCannotAsk, err)
	case unsure(err):
		n.mu.Lock()
		n.backlog.lost++
		n.mu.Unlock()
	}
	return err
}
