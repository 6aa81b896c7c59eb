package checkapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/internal/front/desk"
	"tidegate.dev/tidegate/internal/front/strict"
)

// maxSamples bounds the requests that are evaluated for one question about usage.
const maxSamples = 128

// samples returns the requests for a question about usage that names no path.
func (s *Server) samples() []Sample {
	var all []Sample
	if s.Samples != nil {
		all = s.Samples()
	}
	if len(all) == 0 {
		all = []Sample{{Path: "/"}}
	}
	return all[:min(len(all), maxSamples)]
}

// usage answers POST /v1/usage about the described callers.
func (s *Server) usage(ctx context.Context, x *exchange, text string) *problem {
	sc := scanner{text: text}
	q := x.question()
	readQuestion(&sc, q)
	err := sc.end()
	if err == nil && q.Report {
		err = errReport
	}
	if err != nil {
		return badInput(err)
	}
	asked, named := []Sample{{q.Method, q.Host, q.Target}}, q.Target != ""
	if !named {
		asked = s.samples()
	}
	deadlines := deadlines{server: s, ctx: ctx}
	defer deadlines.stop()
	var found uses
	for _, sample := range asked {
		q.Method, q.Host, q.Target = sample.Method, sample.Host, sample.Path
		r, denied, err := q.Request(s.paths)
		switch {
		case err != nil:
			return badInput(err)
		case denied != nil && named:
			return problemf(denied.Status, "%s", denied.Detail)
		case denied == nil:
			found.add(s.Desk.Usage(deadlines.next(), r))
		}
	}
	x.out = found.appendTo(x.out)
	return nil
}

// ownUsage answers GET /v1/usage that a proxy forwards for a client: with the limits of that
// client.
func (s *Server) ownUsage(w http.ResponseWriter, r *http.Request) {
	if s.believes(r) != nil {
		if p := s.guard.refuse(r); p != nil {
			s.turnAway(w, r, "usage", p)
			return
		}
	}
	host, ok := sole(r.Header["X-Forwarded-Host"])
	if !ok {
		s.fail(w, r, "usage", contradiction("X-Forwarded-Host"))
		return
	}
	own := *r
	own.TLS = nil // the connection is the proxy's
	if host != "" {
		own.Host = host
	}
	s.tellUsage(w, &own, s.front, "GET, POST")
}

// Usage returns a handler that shows clients their own limits, free of charge, for a listener that
// clients reach themselves. It requires no token.
func (s *Server) Usage() http.Handler {
	front := s.HTTP.Front()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.tellUsage(w, r, front, "GET") })
}

// tellUsage answers for the client of r, as identified by front, and the request that the query
// names by method and path.
func (s *Server) tellUsage(w http.ResponseWriter, r *http.Request, front *httplimit.Front, allow string) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		s.fail(w, r, "usage", notAllowed(r, allow))
		return
	}
	asked, p := s.askedOf(r)
	if p != nil {
		s.fail(w, r, "usage", p)
		return
	}
	deadlines := deadlines{server: s, ctx: r.Context()}
	defer deadlines.stop()
	var found uses
	for _, sample := range asked {
		o := originals.Get().(*original)
		p := o.imagine(r, sample, s.paths)
		if p == nil {
			front.Ask(&o.Request, func(q *tidegate.Request) { found.add(s.Desk.Usage(deadlines.next(), q)) })
		}
		o.done()
		if p != nil && r.URL.RawQuery != "" { // otherwise the path was not named by the client
			s.fail(w, r, "usage", problemf(p.Status, "%s", p.Detail))
			return
		}
	}
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = nosniff
	_, _ = w.Write(found.appendTo(nil)) // the client may be gone
	if s.Answered != nil {
		s.Answered(&Answer{Request: r, Verb: "usage", Status: http.StatusOK})
	}
}

// askedOf parses ?method=POST&path=/posts.
func (s *Server) askedOf(r *http.Request) ([]Sample, *problem) {
	var one Sample
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil { // the invalid part may be the path
		return nil, problemf(http.StatusBadRequest, "The query is not understood; write ; as %%3B and %% as %%25.")
	}
	for name, values := range query {
		switch {
		case len(values) != 1:
			return nil, problemf(http.StatusBadRequest, "The parameter %q is there twice.", name)
		case name == "method":
			one.Method = values[0]
		case name == "path":
			one.Path = values[0]
		default:
			return nil, problemf(http.StatusBadRequest, "There is no parameter %q; there are method and path.", name)
		}
	}
	switch {
	case one.Path != "":
		return []Sample{one}, nil
	case one.Method != "":
		return nil, problemf(http.StatusBadRequest, "There is a method without a path.")
	}
	return s.samples(), nil
}

// imagine makes o the request of a sample, sent by the client of r.
func (o *original) imagine(r *http.Request, sample Sample, paths strict.Paths) *strict.Problem {
	o.Request = *r
	o.Method, o.RequestURI, o.URL = sample.Method, sample.Path, &o.url
	if o.Method == "" {
		o.Method = http.MethodGet
	}
	if sample.Host != "" {
		o.Host = sample.Host
	}
	o.ProtoMajor = 1
	o.Body, o.ContentLength = http.NoBody, 0
	return o.inspect(paths)
}

// uses are limits with what is used of them, each once.
type uses []desk.Use

func (all *uses) add(more []desk.Use) {
	for _, u := range more {
		known := false
		for i := range *all {
			had := &(*all)[i]
			same := had.Rule == u.Rule && had.Blocked == u.Blocked && had.Limit.Identity() == u.Limit.Identity()
			known = known || same && (had.Key == u.Key || had.Used == u.Used) // a counter may change between two reads
		}
		if !known {
			*all = append(*all, u)
		}
	}
}

func (all uses) appendTo(b []byte) []byte {
	b = append(b, `{"limits":[`...)
	for i := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendUse(b, &all[i])
	}
	return append(b, `]}`...)
}

func appendUse(b []byte, u *desk.Use) []byte {
	b = append(b, `{"rule":`...)
	b = appendString(b, u.Rule)
	b = append(b, `,"limit":`...)
	b = strconv.AppendInt(b, u.Limit.Capacity(), 10)
	b = append(b, `,"algorithm":`...)
	b = appendString(b, strings.ToLower(u.Limit.Algorithm.String()))
	if u.Limit.Algorithm != tidegate.Quota && u.Limit.Algorithm != tidegate.Concurrency {
		b = append(b, `,"period":`...)
		b = appendSeconds(b, u.Limit.Period)
	}
	if u.Err != nil {
		return append(b, `,"failed":true}`...)
	}
	b = append(b, `,"used":`...)
	b = strconv.AppendInt(b, u.Used, 10)
	b = append(b, `,"remaining":`...)
	b = strconv.AppendInt(b, u.Remaining, 10)
	if u.RetryAfter > 0 {
		b = append(b, `,"retry_after":`...)
		b = appendSeconds(b, u.RetryAfter)
	}
	if u.Limit.Algorithm != tidegate.Concurrency {
		b = append(b, `,"reset_after":`...)
		b = appendSeconds(b, u.ResetAfter)
	}
	if u.Blocked {
		b = append(b, `,"blocked":true`...)
	}
	return append(b, '}')
}
