package ruletest

import (
	"context"
	"net/http"
	"strings"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/describe"
)

// step sends the requests of one step and compares what comes of them.
func (r *running) step(ctx context.Context, s *step) {
	if !r.knows(s) {
		return
	}
	r.advance(ctx, s.At)
	for i, want := range s.Want {
		d, v := r.enter(ctx, s)
		r.requests++
		if d.OK {
			r.admit(v, s, d.Wait)
		}
		if got := outcomeOf(&d); got != want.Outcome {
			r.fail(want.Pos, s, i, "wanted "+string(want.Outcome)+", got "+string(got), &d)
			return
		}
		if i == len(s.Want)-1 {
			r.expect(s, i, &d)
		}
	}
}

// enter puts the request of a step to the gate. In virtual time whole periods come out
// whole: a request that is refused only by the rounding of a bucket comes that moment later.
func (r *running) enter(ctx context.Context, s *step) (tidegate.Decision, *tidegate.Visit) {
	d, v := r.gate.Enter(ctx, s.newRequest())
	if !d.OK && d.RetryAfter > 0 && d.Limit.Terms.AtEnd.Block == nil && d.RetryAfter <= rounding(d.Limit, r.clock.now.Sub(r.clock.start)) {
		r.clock.now = r.clock.now.Add(d.RetryAfter)
		return r.gate.Enter(ctx, s.newRequest())
	}
	return d, v
}

// rounding is how much longer than it should a bucket may have taken since a case
// began: every event is rounded up to 1/1024 µs. It is 0 where that is no small part of an
// event.
func rounding(l *tidegate.Limit, since time.Duration) time.Duration {
	if l.Algorithm != tidegate.TokenBucket && l.Algorithm != tidegate.LeakyBucket {
		return 0
	}
	const ticks = 1024 // of a µs
	period := l.Period.Microseconds() * ticks
	event := (period + l.Events - 1) / l.Events
	excess := (event*l.Events - period) * int64(since/l.Period+1)
	if excess > event/100 {
		return 0
	}
	return time.Duration(excess*1000/ticks + 1)
}

// knows reports whether the rules have all the identities that the step names.
func (r *running) knows(s *step) bool {
	known := true
	described := s.described()
	names := r.set.Identities()
	described.Unknown(names, func(name, near string) {
		why := "they have " + strings.Join(names, ", ")
		if near != "" {
			why = "did you mean `" + near + "`?"
		}
		r.failures = append(r.failures, Failure{
			Pos: s.Pos, Source: line(r.file.lines, s.Pos.Line), Why: []string{why},
			Message: "`as` says `" + name + "`, and no identity of the rules has that name",
		})
		known = false
	})
	return known
}

// outcomeOf names what d says, in the words of a test file.
func outcomeOf(d *tidegate.Decision) outcome {
	switch {
	case d.OK && d.Soft:
		return soft
	case d.OK:
		return admitted
	case d.Limit.Algorithm == tidegate.Deny && !d.Limit.Sheds():
		return denied
	}
	return refused
}

// described is the request of a step.
func (s *step) described() describe.Request {
	r := describe.Request{
		Method: s.Method, URL: s.Host + s.Target, Header: make(http.Header), Body: s.Body,
		IP: describe.Someone, Cost: s.Cost, As: s.As,
	}
	r.AddHeaders(s.Headers)
	switch {
	case s.Body != "":
		r.SetJSON()
	case s.Parts:
		r.SetMultipart(s.Form)
	case s.Form != nil:
		r.SetForm(s.Form)
	}
	return r
}

// newRequest is what a front end makes of the request. Parse has seen that it can be
// made.
func (s *step) newRequest() *tidegate.Request {
	described := s.described()
	r, err := described.Request()
	if err != nil {
		panic(err)
	}
	return r
}
