package client

import (
	"net/http"
	"time"

	"tidegate.dev/tidegate"
)

// question is what the gate is asked about a call. done is called after it was asked.
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

// hostOf is the host that a call is sent to.
func hostOf(req *http.Request) string {
	if req.Host != "" {
		return req.Host
	}
	return req.URL.Host
}

// values are the attributes of a call, and what the matcher has to know beyond them.
type values struct {
	tidegate.Values
	counter string
	longest time.Duration // that it may wait
	cost    int64
	counted []tidegate.Check // see admitted
}

// Value implements tidegate.Values.
func (v *values) Value(name string) (string, bool) {
	if v.Values == nil {
		return "", false
	}
	return v.Values.Value(name)
}

// matcher holds calls to the limits, the rules and the stop of a Provider.
type matcher struct{ p *Provider }

// Match implements tidegate.Matcher. Buckets are booked ahead, so that calls wait in a line.
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
	for i := range dst[start:] {
		c := &dst[start+i]
		if c.Advisory || c.Cost <= 0 {
			continue
		}
		switch c.Limit.Algorithm {
		case tidegate.TokenBucket, tidegate.LeakyBucket:
			c.MaxWait = max(c.MaxWait, v.longest)
		case tidegate.Concurrency, tidegate.Deny:
		default:
			if !c.Estimate && (c.Limit.Terms == nil || len(c.Limit.Terms.AtEnd.Counts) == 0) { // else it is the visit's
				v.counted = append(v.counted, *c)
			}
		}
	}
	return append(dst, tidegate.Check{Key: v.counter, Limit: stopCheck})
}
