package checkapi

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/internal/front/question"
	"tidegate.dev/tidegate/internal/front/strict"
)

// original is the request that a proxy asks about, pooled.
type original struct {
	http.Request
	url       url.URL
	forwarded forwarded
	decision  tidegate.Decision
}

var originals = sync.Pool{New: func() any { return new(original) }}

func (o *original) done() {
	*o = original{}
	originals.Put(o)
}

// forwardAuth answers a proxy: with 204 the proxy forwards the request, any other answer it passes
// to its client. rest is what follows the path, as it was sent.
func (s *Server) forwardAuth(w http.ResponseWriter, r *http.Request, rest string) {
	o := originals.Get().(*original)
	defer o.done()
	deny := 0
	p := s.believes(r)
	who := &s.believed
	if p != nil {
		who = &s.clientIP
	}
	if p == nil && !strings.HasPrefix(rest, "/") {
		deny, p = denyStatus(rest)
		rest = ""
	}
	if p == nil {
		p = o.read(r, rest, s.paths)
	}
	if p != nil {
		w.Header()[decisionHeader] = verdictHeaders[denied]
		if deny != 0 {
			p.Status = deny
		}
		leaveBody(w, r, time.Now().Add(s.Deadline))
		if s.Refused != nil {
			f := &o.forwarded
			s.Refused(strict.Refused{Client: who.Addr(r), Method: f.method, Host: f.host, Path: pathOf(f.target), Reason: p.Detail})
		}
		s.fail(w, r, "forward-auth", p)
		return
	}
	if len(r.Header["X-Forwarded-For"]) == 0 {
		s.forgotAddress.Do(func() {
			s.Log.Warn("check: a proxy asks forward-auth without X-Forwarded-For: its clients are all counted by its own address", "peer", r.RemoteAddr)
		})
	}
	one := s.within(r.Context())
	d := &o.decision
	s.front.Ask(&o.Request, func(q *tidegate.Request) {
		*d = s.Desk.Check(one, q)
		if slip := s.Desk.Slip(q, d); slip != "" {
			w.Header()[httplimit.SlipHeader] = []string{slip}
		}
	})
	one.stop()
	leaveBody(w, r, one.at)
	s.tellProxy(w, r, d, deny)
}

// pathOf returns a target without its query, which may contain secrets, for a log.
func pathOf(target string) string {
	path, _, _ := strings.Cut(target, "?")
	return path[:min(len(path), question.MaxTarget)]
}

// bodyGrace is how long an answer waits for a body in transit, so that the connection can be
// reused.
const bodyGrace = 50 * time.Millisecond

// leaveBody bounds how long an answer waits for the body, for which net/http would wait over HTTP/1:
// some proxies forward its length and never send it, others send it as slowly as their client.
func leaveBody(w http.ResponseWriter, r *http.Request, latest time.Time) {
	if r.ContentLength == 0 {
		return
	}
	by := time.Now().Add(bodyGrace)
	if latest.Before(by) {
		by = latest
	}
	_ = http.NewResponseController(w).SetReadDeadline(by) // there may be no connection to wait for
}

func (s *Server) tellProxy(w http.ResponseWriter, r *http.Request, d *tidegate.Decision, deny int) {
	h := w.Header()
	h[decisionHeader] = verdictHeaders[verdictOf(d)]
	h["Cache-Control"] = noStore
	status := http.StatusNoContent
	if d.OK {
		s.front.Describe(h, d)
		w.WriteHeader(status)
	} else {
		status = deny
		s.front.Refuse(w, r, d, deny)
	}
	if s.Answered != nil {
		if status == 0 {
			status = httplimit.Status(*d)
		}
		s.Answered(&Answer{Request: r, Verb: "forward-auth", Status: status, Decision: d})
	}
}

// denyStatus parses ?deny=NNN, the status of refusals for proxies that accept only some. It must
// not be 5xx: a proxy that fails open would take a refusal for an outage, and some forward their
// client's query.
func denyStatus(rest string) (int, *problem) {
	query := strings.TrimPrefix(rest, "?")
	if query == "" {
		return 0, nil
	}
	digits, ok := strings.CutPrefix(query, "deny=")
	if !ok || len(digits) != 3 || digits < "400" || digits > "499" || strings.Trim(digits, "0123456789") != "" {
		return 0, problemf(http.StatusBadRequest, "Forward-auth takes ?deny=NNN with a status from 400 to 499, and nothing else.")
	}
	return int(digits[0]-'0')*100 + int(digits[1]-'0')*10 + int(digits[2]-'0'), nil
}

// read determines the request that the proxy asks about, from X-Original-URL, X-Original-URI or
// X-Forwarded-Uri, or from the suffix of the path. Contradicting sources are rejected: one of them
// may come from the client, through a proxy that does not know the header.
func (o *original) read(r *http.Request, suffix string, paths strict.Paths) *problem {
	f := &o.forwarded
	f.target = suffix
	if suffix != "" {
		f.method, f.host = r.Method, r.Host
	}
	if p := f.read(r.Header); p != nil {
		return p
	}
	if f.host == "" {
		f.host = r.Host
	}
	o.Request = *r
	o.Method, o.Host, o.RequestURI, o.URL = f.method, f.host, f.target, &o.url
	o.ProtoMajor = 1 // the target is a path, whatever protocol the proxy uses here
	o.TLS = nil      // the connection is the proxy's
	o.Body, o.ContentLength = http.NoBody, 0
	if p := o.inspect(paths); p != nil {
		return problemf(p.Status, "%s", p.Detail)
	}
	return nil
}

func (o *original) inspect(paths strict.Paths) *strict.Problem {
	if p := strict.Method(o.Method); p != nil {
		return p
	}
	if len(o.RequestURI) > question.MaxTarget {
		return &strict.Problem{Status: http.StatusRequestURITooLong, Detail: fmt.Sprintf("The request target is longer than %d bytes.", question.MaxTarget)}
	}
	if o.RequestURI[0] != '/' && o.RequestURI != "*" {
		return &strict.Problem{Status: http.StatusBadRequest, Detail: "The request target is not a path."}
	}
	if p := strict.Parse(o.RequestURI, &o.url); p != nil {
		return p
	}
	if p := strict.Target(&o.Request); p != nil {
		return p
	}
	return paths.Inspect(&o.Request)
}
