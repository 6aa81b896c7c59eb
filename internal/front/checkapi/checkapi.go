// Package checkapi answers over HTTP whether a request may pass: to programs that describe the
// request in JSON (POST /v1/check and others), and to proxies that forward its head
// (/v1/forward-auth). It makes no decisions itself, and forwards nothing.
//
// It is an http.Handler for its own listener, never for the one that clients reach: it believes
// what permitted callers say. Start with [New].
package checkapi

import (
	"cmp"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/internal/front/desk"
	"tidegate.dev/tidegate/internal/front/strict"
)

// Options of [New]. Desk is needed; the zero values of the rest suit most.
type Options struct {
	Desk *desk.Desk
	// HTTP is how forward-auth identifies the client and answers. Its ClientIP also says which
	// peers are proxies.
	HTTP httplimit.Options
	// EncodedSlash passes paths with %2F and backslashes to the rules, which apply to every reading
	// of them. Otherwise they are denied, like dot segments and empty segments: an answer cannot
	// rewrite the path that a proxy forwards.
	EncodedSlash bool
	// Token returns the token that callers present; it is called for every request, so that
	// the token may change.
	// nil or "" means that there is none: then the API answers only callers on this machine.
	Token func() string
	// Certificates accepts a client certificate that the listener has verified, in place of a token.
	Certificates bool
	// Unix accepts connections by a Unix socket without a token.
	Unix bool
	// Known reports whether the rules have an identity of that name; nil means all.
	Known func(identity string) bool
	// Samples are requests that match the rules, for callers that ask for their usage without
	// naming a path; nil means GET / alone.
	Samples func() []Sample
	// Deadline is the longest time until a check is answered, whatever the store does; 0 means 1s.
	// Each of several checks has that long, and after a late one the rest is not tried. The
	// deadline of the store should be shorter.
	Deadline time.Duration
	// Checks is how many checks one question may have; 0 means 256.
	Checks int
	// Answered is called for every answer; nil means never. It must not keep references to it.
	Answered func(*Answer)
	// Refused is called for every request that was refused without the rules, and for callers that
	// are not permitted; nil means never.
	Refused func(strict.Refused)
	// Log gets what operators should know; nil means that nothing is logged.
	Log *slog.Logger
}

// Sample is a request that meets some rule.
type Sample struct{ Method, Host, Path string }

// Answer is the argument of Options.Answered.
type Answer struct {
	Request *http.Request
	Verb    string // check, peek, forward-auth, …
	Status  int
	// Decision is the last one; nil if there was none.
	Decision *tidegate.Decision
}

// Server is the check API, an http.Handler.
type Server struct {
	Options
	guard    guard
	clientIP httplimit.ClientIP // of Options: which peers are proxies
	front    *httplimit.Front   // for callers that passed the guard: trusts their headers
	believed httplimit.ClientIP // of front
	paths    strict.Paths
	room     room // for the long bodies of all requests

	forgotAddress sync.Once
}

// New returns a Server.
func New(o Options) *Server {
	if o.Desk == nil {
		panic("checkapi: New: Options.Desk is nil")
	}
	o.Deadline = cmp.Or(o.Deadline, time.Second)
	o.Checks = cmp.Or(o.Checks, 256)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{Options: o, clientIP: o.HTTP.ClientIP, paths: strict.Paths{EncodedSlash: o.EncodedSlash}}
	s.guard = guard{token: o.Token, certs: o.Certificates, unix: o.Unix}
	believing := o.HTTP
	believing.ClientIP.TrustPeer = func(*http.Request) bool { return true } // the guard has rejected all others
	s.front, s.believed = believing.Front(), believing.ClientIP
	return s
}

const forwardAuth = "/v1/forward-auth"

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// RequestURI, not URL.Path: the suffix is the path of another request, exactly as it was sent.
	if rest, ok := strings.CutPrefix(r.RequestURI, forwardAuth); ok && (rest == "" || rest[0] == '?' || rest[0] == '/') {
		s.forwardAuth(w, r, rest)
		return
	}
	name, _ := strings.CutPrefix(r.URL.Path, "/v1/")
	v, ok := verbs[name]
	switch {
	case ok && name == "usage" && r.Method != http.MethodPost:
		s.ownUsage(w, r)
	case ok:
		s.answer(w, r, name, v)
	case name == "openapi.yaml":
		s.describe(w, r)
	default:
		s.fail(w, r, "", problemf(http.StatusNotFound, "There is nothing at %s; see /v1/openapi.yaml.", r.URL.Path))
	}
}

// answer handles a POST with JSON, whatever the verb.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, name string, v verb) {
	if p := s.guard.refuse(r); p != nil {
		s.turnAway(w, r, name, p)
		return
	}
	if r.Method != http.MethodPost {
		s.fail(w, r, name, notAllowed(r, "POST"))
		return
	}
	x := exchanges.Get().(*exchange)
	defer x.done(&s.room)
	text, p := x.read(r, &s.room)
	if p == nil {
		p = v(s, r.Context(), x, text)
	}
	if p != nil {
		s.fail(w, r, name, p)
		return
	}
	h := w.Header()
	h["Content-Type"] = jsonType
	if x.verdict != undecided {
		h[decisionHeader] = verdictHeaders[x.verdict]
	}
	_, _ = w.Write(x.out) // the client may be gone
	if s.Answered != nil {
		s.Answered(&Answer{Request: r, Verb: name, Status: http.StatusOK, Decision: x.last()})
	}
}

// turnAway answers a caller that the guard rejects, and calls Options.Refused.
func (s *Server) turnAway(w http.ResponseWriter, r *http.Request, name string, p *problem) {
	if s.Refused != nil {
		s.Refused(strict.Refused{Client: s.clientIP.Addr(r), Method: r.Method, Host: r.Host, Path: r.URL.Path, Reason: p.Detail})
	}
	s.fail(w, r, name, p)
}

// fail answers with a problem.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, name string, p *problem) {
	writeProblem(w, r, p)
	if s.Answered != nil {
		s.Answered(&Answer{Request: r, Verb: name, Status: p.Status})
	}
}
