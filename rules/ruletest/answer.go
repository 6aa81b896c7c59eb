package ruletest

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
)

// Answer is what a client gets in a step that expects an `answer`: what the middleware and the
// gateway write for that decision. For an admitted request it is the headers about limits, which
// are sent with the server's own answer.
type Answer struct {
	Case    string      `json:"case"`
	Request string      `json:"request"` // as the step has it: POST /orders
	Rule    string      `json:"rule"`    // that decided; "" if none did
	Outcome string      `json:"outcome"` // a word of want
	Status  int         `json:"status"`
	Header  http.Header `json:"headers"`
	Body    string      `json:"body,omitempty"`
}

// String returns the answer as HTTP writes it, with the headers sorted by name.
func (a *Answer) String() string {
	var b strings.Builder
	if a.Header.Get("Grpc-Status") != "" {
		fmt.Fprintf(&b, "HTTP/2 %d\n", a.Status) // there is no gRPC over HTTP/1
	} else {
		fmt.Fprintf(&b, "HTTP/1.1 %d %s\n", a.Status, http.StatusText(a.Status))
	}
	for _, name := range slices.Sorted(maps.Keys(a.Header)) {
		for _, value := range a.Header[name] {
			fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
	}
	if a.Body != "" {
		b.WriteString("\n" + strings.TrimRight(a.Body, "\n") + "\n")
	}
	return b.String()
}

// answer records what the client is told about d, and returns its status.
func (r *running) answer(s *step, d *tidegate.Decision) int64 {
	described := s.described()
	request, err := described.HTTP()
	if err != nil {
		panic(err) // Parse has made it once
	}
	if strings.HasPrefix(request.Header.Get("Content-Type"), "application/grpc") { // which needs HTTP/2
		request.Proto, request.ProtoMajor, request.ProtoMinor = "HTTP/2.0", 2, 0
	}
	w := httptest.NewRecorder()
	if d.OK {
		if d.Limit != nil {
			r.front.Describe(w.Header(), d)
		}
	} else {
		r.front.Answer(w, request, d)
	}
	r.answers = append(r.answers, Answer{
		Case: r.name, Request: s.Method + " " + s.Host + s.Target, Rule: decider(d), Outcome: string(outcomeOf(d)),
		Status: w.Code, Header: w.Header(), Body: w.Body.String(),
	})
	return int64(w.Code)
}

// newFront returns the front end that writes the answers of a case: the middleware without options.
func newFront() *httplimit.Front { return httplimit.Options{}.Front() }
