package client

import (
	"net/http"
	"strings"
	"time"

	"tidegate.dev/tidegate"
)

// question returns what the gate is asked about a call. The caller calls done when the gate has
// answered.
func (p *Provider) question(req *http.Request, counter string, longest time.Duration) (q *tidegate.Request, done func()) {
	v := &values{counter: counter, longest: longest, cost: 1}
	if p.o.Cost != nil {
		v.cost = max(p.o.Cost(req), 0)
	}
	if p.o.Rules == nil {
		return &tidegate.Request{Method: req.Method, Host: hostOf(req), Path: req.URL.Path, Values: v}, func() {}
	}
	seen := req.WithContext(req.Context()) // as a server would see it
	seen.Host, seen.Body = hostOf(req), nil
	if req.GetBody != nil && req.Body != nil {
		if body, err := req.GetBody(); err == nil {
			seen.Body = body
		}
	}
	q = p.http.Request(seen)
	v.Values, q.Values = q.Values, v
	return q, func() { closeBody(seen) }
}

// hostOf returns the host that a call is sent to.
func hostOf(req *http.Request) string {
	if req.Host != "" {
		return req.Host
	}
	return req.URL.Host
}

// values are the attributes of a call, and what else the matcher has to know.
type values struct {
	tidegate.Values
	counter string
	longest time.Duration // how long it may wait
	cost    int64
	part    part
	// What the matcher has found:
	mixed   bool             // there are turns to wait for, and other charges
	slack   time.Duration    // by which the call may be late for its turn; 0 if it has none
	counted []tidegate.Check // see charge
}

// part is which of the limits of a call are asked about.
type part uint8

const (
	whole part = iota // all of them
	turn              // buckets, which are booked ahead
	rest              // what is charged when the turn has come
)

// Value implements tidegate.Values.
func (v *values) Value(name string) (string, bool) {
	if v.Values == nil {
		return "", false
	}
	return v.Values.Value(name)
}

// matcher holds calls to the limits, the rules and the stop of a Provider.
type matcher struct{ p *Provider }

// Match implements tidegate.Matcher. Buckets are booked ahead, so that calls wait in a line. Windows,
// quotas and slots are charged when a call leaves, not when it books its turn: a call that waits
// would otherwise hold a slot, or count for yesterday. So a call that has both tries at once
// whether there is room for it now; if only its turn is missing, it books that first.
func (m matcher) Match(r *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	v := r.Values.(*values)
	start := len(dst)
	if m.p.o.Rules != nil {
		dst = m.p.o.Rules.Match(r, dst)
	}
	for _, l := range m.p.o.Limits {
		c := tidegate.Check{Key: v.counter, Limit: l, Cost: 1}
		if l.Terms != nil && l.Terms.AtEnd.Settle != "" {
			c.Cost, c.Estimate = v.cost, true
		}
		dst = append(dst, c)
	}
	turns, others := v.survey(dst[start:])
	v.mixed = turns && others
	kept := dst[:start]
	for _, c := range dst[start:] {
		switch {
		case !takesTurn(&c):
			if v.part == turn {
				continue
			}
			v.count(&c)
		case v.part == rest:
			continue
		case v.part == whole && v.mixed:
			c.MaxWait = 0
		default:
			c.MaxWait = max(c.MaxWait, v.longest)
		}
		kept = append(kept, c)
	}
	return append(kept, tidegate.Check{Key: v.counter, Limit: stopCheck})
}

// survey reports whether a call has turns to wait for, and whether it is charged to anything else.
func (v *values) survey(checks []tidegate.Check) (turns, others bool) {
	for i := range checks {
		c := &checks[i]
		switch {
		case takesTurn(c):
			turns = true
			if slack := c.Limit.Period / slackShare; v.slack == 0 || slack < v.slack {
				v.slack = slack
			}
		case charged(c):
			others = true
		}
	}
	return turns, others
}

// count keeps c for admitted.giveBack, unless ending the visit refunds it.
func (v *values) count(c *tidegate.Check) {
	if charged(c) && c.Limit.Algorithm != tidegate.Concurrency && !c.Estimate && (c.Limit.Terms == nil || len(c.Limit.Terms.AtEnd.Counts) == 0) {
		kept := *c
		kept.Key = strings.Clone(c.Key) // it may share memory with the question
		v.counted = append(v.counted, kept)
	}
}

// charged reports whether c takes something.
func charged(c *tidegate.Check) bool {
	return !c.Advisory && c.Cost > 0 && c.Limit.Algorithm != tidegate.Deny
}

// takesTurn reports whether c is one that can be booked ahead.
func takesTurn(c *tidegate.Check) bool { return charged(c) && isBucket(c.Limit) }

func isBucket(l *tidegate.Limit) bool {
	return l.Algorithm == tidegate.TokenBucket || l.Algorithm == tidegate.LeakyBucket
}
