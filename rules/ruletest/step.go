package ruletest

import (
	"context"
	"net/http"
	"slices"
	"strings"

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
		request := s.newRequest()
		d, v := r.gate.Enter(ctx, request)
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
