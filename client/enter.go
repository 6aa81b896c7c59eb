package client

import (
	"fmt"
	"net/http"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/sleep"
)

// entering is a call that waits for room.
type entering struct {
	p       *Provider
	req     *http.Request
	counter string
	began   time.Time
	polls   int // how often all slots were found taken
	missed  int // how many turns it has given up
}

// enter waits until there is room for a call, and charges it.
func (p *Provider) enter(req *http.Request) (*admitted, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	e := &entering{p: p, req: req, counter: p.counter(req), began: time.Now()}
	for {
		a, wait, err := e.ask()
		if a != nil || err != nil {
			return a, err
		}
		if err := sleep.For(req.Context(), wait); err != nil {
			return nil, err
		}
	}
}

// left returns how much longer the call may wait.
func (e *entering) left(now time.Time) time.Duration {
	left := e.p.maxWait() - now.Sub(e.began)
	if deadline, ok := e.req.Context().Deadline(); ok {
		left = min(left, deadline.Sub(now))
	}
	return max(left, 0)
}

// ask asks the gate once, and waits for the turn that it gets. If a is nil, wait is how long to
// wait before asking again.
func (e *entering) ask() (a *admitted, wait time.Duration, err error) {
	a = &admitted{store: e.p.store}
	asked := time.Now()
	d, v := e.take(a, whole)
	if !d.OK && v.mixed && d.Limit != nil && isBucket(d.Limit) { // only its turn has to come
		asked = time.Now()
		d, _ = e.take(a, turn)
	} else {
		v.mixed = false // all is charged, or nothing
	}
	if !d.OK {
		wait, err = e.refused(&d)
		return nil, wait, err
	}
	if d.Wait+d.Waited > 0 || d.Queued || v.mixed {
		if ok, wait, err := e.leave(a, &d, v.mixed); !ok {
			a.giveBack(e.req.Context())
			return nil, wait, err
		}
	}
	late := time.Since(asked) - d.Wait - d.Waited
	if v.slack > 0 && (!d.Queued || d.Waited > 0) && e.p.turns.missed(late, v.slack, time.Now()) && e.missed < maxMissed {
		e.missed++
		a.giveBack(e.req.Context())
		return nil, 0, nil
	}
	return a, 0, nil
}

// leave waits until the turn that d has booked comes, and then charges the rest of the call if
// rests is set. It is not ok if something has changed meanwhile: a stop has begun, or others have
// used up a limit.
func (e *entering) leave(a *admitted, d *tidegate.Decision, rests bool) (ok bool, wait time.Duration, err error) {
	if waited := d.Wait + d.Waited; waited > 0 {
		e.p.tell(e.req, Event{Kind: Paced, Wait: waited})
	}
	if err := sleep.For(e.req.Context(), d.Wait); err != nil {
		return false, 0, err
	}
	for rests {
		d, _ := e.take(a, rest)
		if d.OK {
			return true, 0, nil
		}
		wait, err = e.refused(&d)
		if err != nil || d.Limit == nil || d.Limit.Algorithm != tidegate.Concurrency {
			return false, wait, err
		}
		if err := sleep.For(e.req.Context(), wait); err != nil { // until a slot is free; the turn stays valid
			return false, 0, err
		}
	}
	stopped := e.p.stopped(e.req.Context(), e.counter)
	if stopped > 0 {
		wait, err = e.hold(stopped)
	}
	return stopped <= 0, wait, err
}

// take charges the part p of the call, and adds the charge to a.
func (e *entering) take(a *admitted, p part) (tidegate.Decision, *values) {
	q, done := e.p.question(e.req, e.counter, e.left(time.Now()))
	defer done()
	v := q.Values.(*values)
	v.part = p
	d, visit := e.p.gate.Enter(e.req.Context(), q)
	if d.OK {
		c := charge{visit: visit, receipt: d.Receipt}
		if d.Err == nil { // else nothing was charged
			c.counted = v.counted
		}
		a.charges = append(a.charges, c)
	}
	return d, v
}

// Bounds of the pause between two attempts to get a slot.
const (
	minPoll = 10 * time.Millisecond
	maxPoll = 250 * time.Millisecond
)

// refused returns how long a refused call waits, or the error if that is too long.
func (e *entering) refused(d *tidegate.Decision) (time.Duration, error) {
	left := e.left(time.Now())
	switch l := d.Limit; {
	case e.req.Context().Err() != nil:
		return 0, e.req.Context().Err()
	case d.Err != nil && d.RetryAfter > 0 && d.RetryAfter < left:
		return d.RetryAfter, nil
	case d.Err != nil:
		return 0, e.reject(fmt.Errorf("%w: the store does not answer: %w", ErrLimit, d.Err), d.RetryAfter)
	case d.Never || l == nil:
		return 0, e.reject(fmt.Errorf("%w: %s: %w", ErrLimit, l, tidegate.ErrNever), 0)
	case l.Identity() == stopCheck.Identity():
		return e.hold(d.RetryAfter)
	case l.Algorithm == tidegate.Concurrency && left > 0:
		e.polls++
		pause := min(minPoll<<min(e.polls, 10), maxPoll)
		return min(pause/2+upTo(pause/2), left), nil
	case isBucket(l):
		// It could not be booked: its turn would come after all the time that is left.
		return 0, e.reject(fmt.Errorf("%w: %s", ErrLimit, l), d.RetryAfter+left)
	case d.RetryAfter >= left:
		return 0, e.reject(fmt.Errorf("%w: %s", ErrLimit, l), d.RetryAfter)
	}
	return d.RetryAfter + upTo(min(d.RetryAfter/10, left-d.RetryAfter)), nil
}

// hold returns how long to wait for the end of a stop, or an error if that is too long.
func (e *entering) hold(stopped time.Duration) (time.Duration, error) {
	e.p.turns.refused(time.Now(), stopped)
	left := e.left(time.Now())
	if stopped >= left {
		return 0, e.reject(ErrStopped, stopped)
	}
	wait := stopped + upTo(min(stopped/10, left-stopped))
	e.p.tell(e.req, Event{Kind: Held, Wait: wait})
	return wait, nil
}

func (e *entering) reject(reason error, after time.Duration) error {
	err := &RefusedError{Reason: reason, Key: e.p.key(e.req), RetryAfter: after}
	e.p.tell(e.req, Event{Kind: Rejected, Err: err})
	return err
}
