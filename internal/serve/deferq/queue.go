package deferq

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/internal/chain"
)

// Options configure a [Queue].
type Options struct {
	// Store keeps the requests.
	Store Store
	// Max is how many bytes the store may keep; each key has its share of them.
	Max int64
	// Streams is what rules with `to: stream` append to; nil means that they refuse.
	Streams Streams
	// Rules are the rules in force, and Counters the counters that they use, without the [Layer].
	Rules    tidegate.Matcher
	Counters tidegate.Store
	// Forgetful: the counters start empty. Kept requests then wait for as long as their limits look
	// back, but at most a minute, so that shorter limits are not exceeded.
	Forgetful bool
	// Strict: an attempt is made only if the counters themselves have decided, not a fallback for
	// them.
	Strict bool
	// HTTP says how callers are identified.
	HTTP httplimit.Options
	// Identify returns the identities of the sender of a request.
	Identify func(*http.Request) map[string]string
	// Send sends a request. sent is false if no upstream can have received any of it.
	Send func(*http.Request) (res *http.Response, sent bool, err error)
	// Path is the path below which callers see the status of their requests, with a slash at its
	// end.
	Path string
	// Timeout of an attempt, from the request to the end of the answer.
	Timeout time.Duration
	// Strip are canonical names of headers that are not kept.
	Strip []string
	// Credentials are headers that are set for each attempt, by canonical name.
	Credentials map[string]func() (string, error)
	// Observer is called for metrics; nil means that there is none.
	Observer Observer
	// Log gets what operators should know.
	Log *slog.Logger
}

// Observer gets events for metrics.
type Observer interface {
	// Kept is called for every request that was refused by a rule with defer: with "kept", or why
	// it was not kept: "full", "body", "limited", "failed" or "draining".
	Kept(rule, how string)
	// Tried is called for every attempt, with "done", "dead" or "again".
	Tried(rule, how string, took time.Duration)
}

// workers is how many lines are processed at the same time.
const workers = 32

// Pauses between the attempts of a request.
const (
	firstPause = time.Second
	maxPause   = 5 * time.Minute
)

// roomEvery is how often room is asked for at least: the limit may have been raised, or a key
// reset.
const roomEvery = 10 * time.Second

// slotEvery is how often a slot is asked for at least.
const slotEvery = 100 * time.Millisecond

// Queue keeps requests and sends them later.
type Queue struct {
	o        Options
	front    *httplimit.Front
	behind   *Layer // the counters, which refuse requests whose line at another rule is busy
	started  time.Time
	reading  atomic.Int64 // bytes of bodies that are being read
	watching atomic.Int64 // clients that are asking for a status
	draining atomic.Bool

	stop    context.CancelFunc // ends the workers
	cut     context.CancelFunc // cancels attempts in flight
	working sync.WaitGroup
}

// New returns a Queue that works until Close.
func New(o Options) *Queue {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Observer == nil {
		o.Observer = nobody{}
	}
	q := &Queue{o: o, front: o.HTTP.Front(), started: time.Now()}
	q.behind = &Layer{Backend: chain.Adapt(o.Counters), Busy: o.Store.Busy}
	next, stop := context.WithCancel(context.Background())
	tries, cut := context.WithCancel(context.Background())
	q.stop, q.cut = stop, cut
	for range workers {
		q.working.Go(func() { q.work(next, tries) })
	}
	return q
}

type nobody struct{}

func (nobody) Kept(string, string)                 {}
func (nobody) Tried(string, string, time.Duration) {}

// Close is Rest, and closes the store.
func (q *Queue) Close(ctx context.Context) error {
	q.Rest(ctx)
	return q.o.Store.Close()
}

// Rest stops sending. Attempts in flight are cut off when ctx ends; their requests stay kept. Requests
// are still accepted.
func (q *Queue) Rest(ctx context.Context) {
	q.stop()
	ended := make(chan struct{})
	go func() { q.working.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
		q.cut()
		<-ended
	}
	q.cut()
}

// Drain makes the queue accept no more requests, or accept them again.
func (q *Queue) Drain(on bool) { q.draining.Store(on) }

// Draining reports whether the queue accepts no more requests.
func (q *Queue) Draining() bool { return q.draining.Load() }

// Store returns the store of the requests.
func (q *Queue) Store() Store { return q.o.Store }

// work tries entries until next ends; attempts use the context tries.
func (q *Queue) work(next, tries context.Context) {
	for {
		e, err := q.o.Store.Next(next)
		if next.Err() != nil {
			if err == nil {
				q.o.Store.Again(e)
			}
			return
		}
		if err != nil {
			q.o.Log.Error("deferred requests cannot be read; none is sent for now", "err", err)
			_ = await(next, nil, time.Now().Add(time.Second)) // the loop looks whether it has ended
			continue
		}
		q.try(tries, e)
	}
}

// try sends an entry if its limit has room. Otherwise it gives the entry back to the store, or ends
// it as dead if it has expired or can never be admitted.
func (q *Queue) try(ctx context.Context, e *Entry) {
	now := time.Now()
	if !now.Before(e.Expires) {
		q.dead(e, "it was kept for "+e.Keep.String()+", and could not be sent"+because(e.Reason))
		return
	}
	checks := q.checksOf(e)
	if q.o.Forgetful {
		if until := q.started.Add(lookBack(checks)); now.Before(until) {
			e.Next = until
			q.o.Store.Again(e)
			return
		}
	}
	gate := tidegate.NewGate(fixed(checks), q.o.Counters)
	var charge tidegate.Charge
	d, visit := gate.EnterCharged(ctx, &tidegate.Request{Unattended: true}, &charge)
	switch {
	case d.Never:
		q.dead(e, "it costs more than its limit can ever admit")
		return
	case !d.OK:
		wait := min(max(d.RetryAfter, time.Millisecond), roomEvery)
		if d.Limit != nil && d.Limit.Algorithm == tidegate.Concurrency {
			wait = min(wait, slotEvery) // a slot may be released at any moment
		}
		e.Next = now.Add(wait)
		q.o.Store.Again(e)
		return
	}
	if q.o.Strict && (d.Err != nil || d.Receipt.Origin == tidegate.OriginLocal) {
		_, _ = visit.End(tidegate.Outcome{Void: true}), charge.Return(ctx) // if the store fails, the charge stands
		e.Next = now.Add(time.Second)
		q.o.Store.Again(e)
		return
	}
	tried := q.send(ctx, e, visit)
	_ = visit.End(outcome(&tried)) // if the store fails, the charge stands
	if tried.sent {
		charge.Keep()
	} else {
		_ = charge.Return(ctx)
	}
	if ctx.Err() != nil && tried.err != nil { // cut off: the outcome is unknown, so it is sent again
		q.o.Store.Again(e)
		return
	}
	q.conclude(e, &tried)
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return "; last: " + reason
}

func outcome(t *attempt) tidegate.Outcome {
	if !t.sent {
		return tidegate.Outcome{Void: true}
	}
	if t.result == nil {
		return tidegate.Outcome{}
	}
	return tidegate.Outcome{Status: t.result.Status}
}

// conclude ends an entry after an attempt, or makes it wait for the next.
func (q *Queue) conclude(e *Entry, t *attempt) {
	e.Attempts++
	status := 0
	if t.err == nil {
		status = t.result.Status
	}
	switch {
	case t.err != nil:
		q.again(e, t, t.err.Error())
	case status >= 500 || status == http.StatusTooManyRequests:
		q.again(e, t, "the upstream answered "+strconv.Itoa(status))
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		q.o.Observer.Tried(e.Line.Rule, "dead", t.took)
		e.Result = t.result
		q.dead(e, "the upstream answered "+strconv.Itoa(status)+": its credentials do not hold any more")
	default:
		q.o.Observer.Tried(e.Line.Rule, "done", t.took)
		e.State, e.Reason, e.Result, e.Ended = Done, "", t.result, time.Now()
		q.o.Store.End(e)
	}
}

// again makes the entry wait: twice as long each time, with jitter.
func (q *Queue) again(e *Entry, t *attempt, reason string) {
	q.o.Observer.Tried(e.Line.Rule, "again", t.took)
	pause := pauseAfter(e.Attempts)
	e.Reason = reason
	if e.Next = time.Now().Add(max(pause, t.retryAfter)); e.Next.After(e.Expires) {
		e.Next = e.Expires // so that those behind it do not wait longer
	}
	q.o.Store.Again(e)
}

func pauseAfter(attempts int) time.Duration {
	pause := maxPause
	if n := attempts - 1; n < 20 {
		pause = min(firstPause<<n, maxPause)
	}
	return pause/2 + rand.N(pause/2)
}

func (q *Queue) dead(e *Entry, reason string) {
	e.State, e.Reason, e.Ended = Dead, reason, time.Now()
	q.o.Log.Warn("a deferred request is dead", "rule", e.Line.Rule, "attempts", e.Attempts, "reason", reason)
	q.o.Store.End(e)
}

// lookBack returns for how long the limits of checks count past events, at most a minute.
func lookBack(checks []tidegate.Check) (longest time.Duration) {
	for i := range checks {
		l := checks[i].Limit
		back := l.Period
		switch l.Algorithm {
		case tidegate.Concurrency, tidegate.Deny:
			continue // slots of the previous process have ended with it
		case tidegate.TokenBucket:
			back = time.Duration(float64(l.Period) * float64(l.Burst) / float64(l.Events))
		case tidegate.Quota:
			back = time.Minute
		}
		longest = max(longest, back)
	}
	return min(longest, time.Minute)
}

// fixed is a Matcher that always returns the same checks.
type fixed []tidegate.Check

// Match implements [tidegate.Matcher].
func (f fixed) Match(_ *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	return append(dst, f...)
}

// checksOf returns what an attempt is charged: the limits of the deferring rule, as they are in
// force now, and slots of other rules. If the rules no longer find the line of the entry, the limits
// that it was accepted under count. What was charged at acceptance is not charged again.
func (q *Queue) checksOf(e *Entry) (checks []tidegate.Check) {
	found := false
	if r, err := e.Request.http(context.Background()); err == nil {
		q.front.Ask(r, func(ask *tidegate.Request) {
			ask.Looking = true
			for _, c := range q.o.Rules.Match(ask, nil) {
				own := limits(&c) && LineOf(&c) == e.Line
				switch {
				case own:
					found = true
				case !(c.Limit.Algorithm == tidegate.Concurrency && !c.Advisory):
					continue
				}
				checks = append(checks, alone(c))
			}
		})
	}
	if found {
		return checks
	}
	for _, c := range e.Checks {
		if l, err := tidegate.NewLimit(c.Spec); err == nil {
			checks = append(checks, tidegate.Check{Key: c.Key, Limit: l, Cost: c.Cost, Unattended: true})
		}
	}
	return checks
}

// alone returns c without references to the request, and without a wait for its turn.
func alone(c tidegate.Check) tidegate.Check {
	c.Key = strings.Clone(c.Key)
	c.MaxWait, c.Unattended = 0, true
	return c
}

// limits reports whether c counts and can refuse.
func limits(c *tidegate.Check) bool {
	return !c.Advisory && c.Cost > 0 && c.Limit.Terms != nil && c.Limit.Algorithm != tidegate.Deny
}

// defers reports whether requests that c refuses may be kept.
func defers(c *tidegate.Check) bool { return limits(c) && c.Limit.Terms.Handling.Defer != nil }
