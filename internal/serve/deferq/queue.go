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
	// Max is how many bytes the store may keep, of which a key has its share.
	Max int64
	// Streams are where rules with `to: stream` append; nil means that those refuse.
	Streams Streams
	// Rules in force, and Counters that they are counted in, without the [Layer].
	Rules    tidegate.Matcher
	Counters tidegate.Store
	// Forgetful: the counters have lost what was counted before this process. What is kept
	// then waits for as long as a limit looks back, so that it is never exceeded.
	Forgetful bool
	// Strict: an attempt is made only if the counters themselves have decided, and not what stands in for
	// them while they do not answer.
	Strict bool
	// HTTP says how callers are identified.
	HTTP httplimit.Options
	// Identify returns who sends a request, by the names of the rules.
	Identify func(*http.Request) map[string]string
	// Send passes a request on. sent is false if nothing of it can have reached anybody.
	Send func(*http.Request) (res *http.Response, sent bool, err error)
	// Path below which callers see how their requests are, with a slash at its end.
	Path string
	// Timeout of an attempt, from the request to the end of the answer.
	Timeout time.Duration
	// Strip are canonical names of headers that are not kept.
	Strip []string
	// Credentials are headers that are set at each attempt, by canonical name.
	Credentials map[string]func() (string, error)
	// Observer is told what happens; nil means nobody.
	Observer Observer
	// Log gets what an operator should know.
	Log *slog.Logger
}

// Observer gets events for metrics.
type Observer interface {
	// Kept is called for every request that was refused by a rule with defer: "kept", or why it
	// was not, "full", "body", "limited", "failed" or "draining".
	Kept(rule, how string)
	// Tried is called for every attempt: "done", "dead", "again".
	Tried(rule, how string, took time.Duration)
}

// workers is how many lines are worked off at the same time.
const workers = 32

// Pauses between the attempts of a request.
const (
	firstPause = time.Second
	maxPause   = 5 * time.Minute
)

// roomEvery is how often room is asked for at least: the limit may have been raised, or a key reset.
const roomEvery = 10 * time.Second

// slotEvery is how often a slot is asked for.
const slotEvery = 100 * time.Millisecond

// Queue keeps requests and sends them later.
type Queue struct {
	o        Options
	front    *httplimit.Front
	behind   *Layer // the counters, for who must not overtake those that another rule has kept
	started  time.Time
	reading  atomic.Int64 // bytes of bodies that are being read
	watching atomic.Int64 // clients that ask how a request is
	draining atomic.Bool

	stop    context.CancelFunc // no more are tried
	cut     context.CancelFunc // those being tried end
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

// Close stops sending. Attempts in flight have until ctx ends; the requests of those that are cut
// off then stay kept. It closes the store.
func (q *Queue) Close(ctx context.Context) error {
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
	return q.o.Store.Close()
}

// Drain makes the queue keep no more requests, or keep them again.
func (q *Queue) Drain(on bool) { q.draining.Store(on) }

// Draining reports whether no more requests are kept.
func (q *Queue) Draining() bool { return q.draining.Load() }

// Store returns what the requests are kept in.
func (q *Queue) Store() Store { return q.o.Store }

// work tries entries until next ends; tries is what they are tried with.
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

// try sends an entry if its limit has room, and gives it back to the store.
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
			wait = min(wait, slotEvery) // whoever has one may give it back at any moment
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
	if ctx.Err() != nil { // cut off: nobody knows how it ended, and it is sent again
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

// conclude decides what becomes of an entry after an attempt.
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

// again lets the entry wait: twice as long each time, and not all at the same moment.
func (q *Queue) again(e *Entry, t *attempt, reason string) {
	q.o.Observer.Tried(e.Line.Rule, "again", t.took)
	pause := pauseAfter(e.Attempts)
	e.Reason = reason
	if e.Next = time.Now().Add(max(pause, t.retryAfter)); e.Next.After(e.Expires) {
		e.Next = e.Expires // those behind it do not wait longer than that
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

// lookBack is for how long the limits of checks count what has passed, and a minute at most.
func lookBack(checks []tidegate.Check) (longest time.Duration) {
	for i := range checks {
		l := checks[i].Limit
		back := l.Period
		switch l.Algorithm {
		case tidegate.Concurrency, tidegate.Deny:
			continue // slots died with those who had them
		case tidegate.TokenBucket:
			back = time.Duration(float64(l.Period) * float64(l.Burst) / float64(l.Events))
		case tidegate.Quota:
			back = time.Minute
		}
		longest = max(longest, back)
	}
	return min(longest, time.Minute)
}

// fixed is the checks of a request that are known already.
type fixed []tidegate.Check

// Match implements [tidegate.Matcher].
func (f fixed) Match(_ *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	return append(dst, f...)
}

// checksOf returns what an attempt is charged: the limits of the deferring rule, as the rules in force have
// them, and slots of others. What it was charged when it was accepted is not charged again.
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

// alone is c without memory of the request, for a caller that does not wait for its turn.
func alone(c tidegate.Check) tidegate.Check {
	c.Key = strings.Clone(c.Key)
	c.MaxWait, c.Unattended = 0, true
	return c
}

// limits reports whether c counts and may refuse.
func limits(c *tidegate.Check) bool {
	return !c.Advisory && c.Cost > 0 && c.Limit.Terms != nil && c.Limit.Algorithm != tidegate.Deny
}

// defers reports whether what c refuses may be kept.
func defers(c *tidegate.Check) bool { return limits(c) && c.Limit.Terms.Handling.Defer != nil }
