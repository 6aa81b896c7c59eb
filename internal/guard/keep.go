package guard

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"tidegate.dev/tidegate"
)

// How debts are paid: a few at a time, one call each, so that a call that fails puts
// no other in doubt.
const (
	payEvery = 10 * time.Millisecond // half to one and a half of it
	payMost  = 32
	maxTries = 600                    // a minute
	payPause = 100 * time.Millisecond // after one that could not be paid
)

// probing is what probes are charged to: an ordinary write, in case that only reading
// works, under several keys, in case that they live apart.
var probing = tidegate.MustLimit(tidegate.Spec{Name: "tidegate-probe", Algorithm: tidegate.TokenBucket, Events: 1000, Period: time.Second})

const probeKeys = 16

// keepLocked sees to it that keep runs.
func (g *Guard) keepLocked() {
	if g.keeping || g.closed {
		return
	}
	g.keeping = true
	g.stopped.Go(g.keep)
}

// keep probes the inner store until it is well, and pays what is owed to it. It is
// the one goroutine of a Guard, and ends when there is nothing left to do.
func (g *Guard) keep() {
	pay := g.now() + jitter(payEvery)
	told := OK
	for {
		if g.tick() == probe {
			g.probe()
		}
		g.pay(&pay)
		if h := g.Health(); h.State != told {
			told = h.State
			if g.o.OnState != nil {
				g.o.OnState(h)
			}
		}
		wait, done := g.rest(told, pay)
		if done {
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-g.stop:
			timer.Stop()
			return
		}
	}
}

func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d) }

func (g *Guard) tick() action {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stepLocked(event{kind: tick, now: g.now()}, nil)
}

// rest is how long there is nothing to do; done is for good. told is the state that
// was last told of, pay when the next debts are paid.
func (g *Guard) rest(told State, pay time.Duration) (wait time.Duration, done bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	state := g.breaker.state
	if state != told {
		return 0, false
	}
	owing := len(g.owed.byID) > 0 && g.breaker.answers()
	switch wait = g.breaker.wake(now); {
	case owing && state == OK:
		wait = max(pay-now, time.Millisecond)
	case owing:
		wait = min(wait, max(pay-now, time.Millisecond))
	case state == OK:
		g.keeping = false
		return 0, true
	}
	return wait, false
}

// probe asks the inner store something and tells the breaker.
func (g *Guard) probe() {
	key := fmt.Sprintf("%d", rand.IntN(probeKeys))
	now := g.now()
	_, err := g.take(context.Background(), []tidegate.Check{{Key: key, Limit: probing, Cost: 1}}, 1, now)
	g.count.probes.Add(1)
	e := event{kind: answered}
	if err != nil && !errors.Is(err, tidegate.ErrCannotAsk) { // which is an answer
		e.kind = unanswered
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	e.now = g.now()
	g.stepLocked(e, err)
}

// pay pays some of what is owed, if the inner store answers and it is time. An amount
// is sent once: what may have been charged is not sent again, what surely was not is
// owed still, until it has faded.
func (g *Guard) pay(when *time.Duration) {
	g.mu.Lock()
	now := g.now()
	if !g.breaker.answers() || now < *when {
		g.mu.Unlock()
		return
	}
	due := g.dueLocked(payMost, now)
	g.mu.Unlock()
	next := jitter(payEvery)
	var aside []payment // whose counters cannot be asked about
	defer func() { g.oweAgain(aside) }()
	for i, p := range due {
		var again []payment
		charge := []tidegate.Check{{Key: p.id.key, Limit: p.debt.limit, Cost: p.amount}}
		err := g.reach(context.Background(), true, func(ctx context.Context) error { return g.inner.Adjust(ctx, 0, charge) })
		switch {
		case err == nil:
			g.count.posted.Add(1)
			continue
		case errors.Is(err, tidegate.ErrCannotAsk) && p.debt.tries < maxTries:
			p.debt.tries++
			aside, next = append(aside, p), jitter(payPause)
			continue
		case unsure(err):
			g.count.lost.Add(1)
			again = due[i+1:]
		case p.debt.tries >= maxTries:
			g.count.lost.Add(1)
			again = due[i+1:]
		default: // the next time others come first, in case that it is the key
			p.debt.tries++
			again = append(due[i+1:], p)
		}
		next = jitter(payPause)
		g.oweAgain(again)
		break
	}
	*when = g.now() + next
}
