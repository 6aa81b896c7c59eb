package ruletest

import (
	"context"
	"net/http"
	"strings"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/describe"
)

// step sends the requests of one step and compares the outcomes. It stops at the first difference.
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

// enter asks the gate about the request of a step. If a bucket refuses it only because of rounding,
// it moves the clock by that moment and asks again, so that whole periods work out exactly.
func (r *running) enter(ctx context.Context, s *step) (tidegate.Decision, *tidegate.Visit) {
	d, v := r.gate.Enter(ctx, s.newRequest())
	if !d.OK && d.RetryAfter > 0 && d.Limit.Terms.AtEnd.Block == nil && d.RetryAfter <= rounding(d.Limit, r.clock.now.Sub(r.clock.start)) {
		r.clock.now = r.clock.now.Add(d.RetryAfter)
		return r.gate.Enter(ctx, s.newRequest())
	}
	return d, v
}

// rounding returns by how much rounding may have delayed a bucket since the case began: the time of
// every event is rounded up to 1/1024 µs. It returns 0 if that is more than a small part of an
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

// outcomeOf returns the outcome d in the words of a test file.
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

// described returns the request of a step as the front end describes requests.
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

// newRequest returns the request as a front end makes it. Parse has checked that this works.
func (s *step) newRequest() *tidegate.Request {
	described := s.described()
	r, err := described.Request()
	if err != nil {
		panic(err)
	}
	return r
}
