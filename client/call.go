package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"tidegate.dev/tidegate/internal/lang/sleep"
)

// call is one request on its way through a Transport.
type call struct {
	t      *Transport
	req    *http.Request
	host   *host
	waited time.Duration
	try    int // how often it has been sent
}

// retryPlan says whether a call is sent again after a try, and after how long.
type retryPlan struct {
	again bool
	wait  time.Duration
}

// left returns how much longer the call may wait: up to MaxWait, and to its deadline.
func (c *call) left(now time.Time) time.Duration {
	left := c.t.maxWait() - c.waited
	if deadline, ok := c.req.Context().Deadline(); ok {
		left = min(left, deadline.Sub(now))
	}
	return left
}

// admit waits until a new request may be sent. It rejects one whose host is stopped for too long,
// or refuses most requests.
func (c *call) admit() error {
	if err := c.awaitStop(); err != nil {
		return err
	}
	if !c.host.ask(time.Now(), c.t.throttle(), max(c.t.retryShare(), 0)) {
		return c.reject(ErrThrottled, 0)
	}
	return c.awaitTurn()
}

// awaitRedirect returns a redirect once its Retry-After has passed, because http.Client follows it
// at once. If that takes longer than the call may wait, it returns it immediately.
func (c *call) awaitRedirect(res *http.Response) (*http.Response, error) {
	now := time.Now()
	wait, told := retryAfter(res.Header, now)
	if !told || wait <= 0 || wait >= c.left(now) {
		return res, nil
	}
	c.t.tell(c.req, Event{Kind: Held, Key: c.host.key, Try: c.try, Status: res.StatusCode, Wait: wait})
	if err := c.sleep(wait); err != nil {
		_ = res.Body.Close()
		return nil, err
	}
	return res, nil
}

// awaitStop waits until the time before which the server has asked for no requests, and up to a
// tenth longer, so that waiting calls do not resume all at once. If that time is later than the
// call may wait, it rejects the call at once.
func (c *call) awaitStop() error {
	for {
		now := time.Now()
		stopped := c.host.stoppedFor(now)
		if stopped <= 0 {
			return nil
		}
		left := c.left(now)
		if stopped > left {
			return c.reject(ErrStopped, stopped)
		}
		wait := stopped + upTo(min(stopped/10, left-stopped))
		c.t.tell(c.req, Event{Kind: Held, Key: c.host.key, Try: c.try, Wait: wait})
		if err := c.sleep(wait); err != nil {
			return err
		}
	}
}

// awaitTurn waits for the request's turn if little of a limit remains, then for a stop that may
// have begun meanwhile. If the turn is later than the call may wait, the request is sent at once.
func (c *call) awaitTurn() error {
	now := time.Now()
	wait := c.host.turn(now, c.left(now))
	if wait <= 0 {
		return nil
	}
	c.t.tell(c.req, Event{Kind: Paced, Key: c.host.key, Try: c.try, Wait: wait})
	if err := c.sleep(wait); err != nil {
		return err
	}
	return c.awaitStop()
}

// await waits that long before another try, then for a stop and for the turn of the request.
func (c *call) await(wait time.Duration) error {
	if err := c.sleep(wait); err != nil {
		return err
	}
	if err := c.awaitStop(); err != nil {
		return err
	}
	return c.awaitTurn()
}

// classify decides whether the call is sent again after a try. It records what the response says of
// the host, and stops the host if a refusal that is not final names a time within MaxWait.
func (c *call) classify(res *http.Response, err error) retryPlan {
	if err != nil {
		return c.classifyError(err)
	}
	now := time.Now()
	all := quotas(res.Header, now)
	r, refused := refusalOf(res, all, now)
	if after, told := retryAfter(res.Header, now); refused && told {
		renewBy(all, after)
	}
	c.host.learn(accepted(res), all, now, c.t.paceBelow())
	if !refused {
		return retryPlan{}
	}
	if res.StatusCode == http.StatusRequestTimeout && !idempotent(c.req) && !shouldRetry(res) { // the server may have received it in time
		r.final = true
	}
	if r.named && !r.final && r.after <= c.t.maxWait() {
		c.host.stop(now.Add(r.after))
	}
	p := c.plan(r, res.StatusCode == http.StatusTooManyRequests, now)
	c.tellOf(p, res.StatusCode, nil)
	return p
}

func (c *call) classifyError(err error) retryPlan {
	if refusedBelow(err) || errors.Is(c.req.Context().Err(), context.Canceled) {
		return retryPlan{} // it was not sent, or the caller has cancelled it
	}
	now := time.Now()
	c.host.unreachable(now)
	var p retryPlan
	if idempotent(c.req) && transient(c.req.Context(), err) {
		p = c.plan(refusal{}, false, now)
	}
	c.tellOf(p, 0, err)
	return p
}

// maxSpread caps the wait that a spread is computed from, so that its doublings fit a Duration.
const maxSpread = 30 * 24 * time.Hour

// plan returns whether a call that was refused or failed is tried again, and when: after the wait
// that r names, and a random spread. limited says that the status is 429: if r names a time, such a
// retry does not use up the budget.
func (c *call) plan(r refusal, limited bool, now time.Time) retryPlan {
	if r.final || c.try >= c.t.maxTries() || !replayable(c.req) {
		return retryPlan{}
	}
	left := c.left(now)
	spread := c.t.backoff(c.try)
	if r.named { // half of the wait, doubled with every try
		spread = max(spread, min(r.after, left, maxSpread)/2<<min(c.try-1, 10))
	}
	if r.after >= left {
		return retryPlan{}
	}
	if !(limited && r.named) && (c.t.retryShare() < 0 || !c.host.retry()) {
		return retryPlan{}
	}
	return retryPlan{again: true, wait: r.after + upTo(min(spread, left-r.after))}
}

func (c *call) tellOf(p retryPlan, status int, err error) {
	e := Event{Kind: Final, Key: c.host.key, Try: c.try, Status: status, Err: err}
	if p.again {
		e.Kind, e.Wait = Retried, p.wait
	}
	c.t.tell(c.req, e)
}

// reject tells OnEvent of a request that is not sent, and returns its error.
func (c *call) reject(reason error, after time.Duration) error {
	err := &RefusedError{Reason: reason, Key: c.host.key, RetryAfter: after}
	c.t.tell(c.req, Event{Kind: Rejected, Key: c.host.key, Try: c.try, Err: err})
	return err
}

func (c *call) sleep(d time.Duration) error {
	c.waited += d
	return sleep.For(c.req.Context(), d)
}

// upTo returns a random time from 0 to d.
func upTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return rand.N(d + 1)
}
