package ruletest

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/internal/diag"
)

// step sends the requests of one step and compares what comes of them.
func (r *running) step(ctx context.Context, s *Step) {
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
		if got := outcome(&d); got != want.Outcome {
			r.fail(want.Pos, s, i, "wanted "+string(want.Outcome)+", got "+string(got), &d)
			return
		}
		if i == len(s.Want)-1 {
			r.expect(s, i, &d)
		}
	}
}

// enter puts the request of a step to the gate. In virtual time whole periods come out
// whole: who is refused for the rounding of a bucket alone comes that moment later.
func (r *running) enter(ctx context.Context, s *Step) (tidegate.Decision, *tidegate.Visit) {
	d, v := r.gate.Enter(ctx, s.newRequest())
	if !d.OK && d.RetryAfter > 0 && d.Limit.Terms.Block == nil && d.RetryAfter <= rounding(d.Limit, r.clock.now.Sub(r.clock.start)) {
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

// knows reports whether the rules ask for all that the step says of who is asking:
// what they do not ask for would change nothing, in silence.
func (r *running) knows(s *Step) bool {
	names := r.set.Identities()
	known := true
	for _, name := range sorted(s.As) {
		if slices.Contains(names, name) {
			continue
		}
		why := "they have " + strings.Join(names, ", ")
		if near := diag.Nearest(name, names); near != "" {
			why = "did you mean `" + near + "`?"
		}
		r.failures = append(r.failures, Failure{
			Pos: s.Pos, Source: line(r.file.lines, s.Pos.Line), Why: []string{why},
			Message: "`as` says `" + name + "`, and no identity of the rules has that name",
		})
		known = false
	}
	return known
}

func outcome(d *tidegate.Decision) Outcome {
	switch {
	case d.OK && d.Soft:
		return Soft
	case d.OK:
		return OK
	case d.Limit.Algorithm == tidegate.Deny:
		return Denied
	}
	return Refused
}

// newRequest is what a front end makes of the request, with the identities of
// the step in place of those it would find.
func (s *Step) newRequest() *tidegate.Request {
	h, err := http.NewRequest(s.Method, "http://"+s.host()+s.Target, strings.NewReader(s.Body))
	if err != nil { // an odd target: as a server would, take it as it is
		h, _ = http.NewRequest(s.Method, "http://"+s.host()+"/", strings.NewReader(s.Body))
		h.URL.Path = s.Target
	}
	for _, name := range sorted(s.Headers) {
		h.Header.Set(name, s.Headers[name])
	}
	if s.Body != "" && h.Header.Get("Content-Type") == "" {
		h.Header.Set("Content-Type", "application/json")
	}
	h.RemoteAddr = s.peer()
	request := httplimit.Options{}.Request(h)
	request.Cost = s.Cost
	request.Values = identified{request.Values, s.As}
	return request
}

func (s *Step) host() string {
	if s.Host == "" {
		return "localhost"
	}
	return s.Host
}

// peer is where the request comes from: one of the addresses that are kept for
// documentation, unless the step says.
func (s *Step) peer() string {
	if ip := s.As["ip"]; ip != "" {
		if strings.Contains(ip, ":") {
			ip = "[" + ip + "]"
		}
		return ip + ":40000"
	}
	return "192.0.2.1:40000"
}

// identified answers for the identities that a test names.
type identified struct {
	tidegate.Values
	as map[string]string
}

// Identity implements [rules.Identified].
func (v identified) Identity(name string) (value string, known bool) {
	if name == "ip" { // found from the peer, so that prefixes hold
		return "", false
	}
	value, known = v.as[name]
	return value, known
}
