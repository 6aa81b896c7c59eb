package deferq

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
)

// maxReading bounds the bytes of bodies that are being read at the same time; further requests are
// refused.
const maxReading = 64 << 20

// reading counts the bytes of a body as they arrive: a Content-Length alone takes no memory.
type reading struct {
	io.Reader
	all *atomic.Int64 // of all bodies
	n   int64
}

func (r *reading) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.n += int64(n)
	if r.all.Add(int64(n)) > maxReading {
		return n, ErrFull
	}
	return n, err
}

func (r *reading) done() { r.all.Add(-r.n) }

// Keep keeps a request that was refused by d, and answers 202; or it answers with a refusal by
// another of its limits. Otherwise it returns false, and the refusal by d stands. header is what
// upstreams get. The request is charged to its other limits before its body is read.
func (q *Queue) Keep(w http.ResponseWriter, r *http.Request, header http.Header, d *tidegate.Decision) bool {
	if d.Limit == nil || d.Limit.Terms == nil || d.Limit.Terms.Handling.Defer == nil || d.Never || d.Err != nil || !plain(r) {
		return false
	}
	rule, terms := d.Limit.Terms.Rule, d.Limit.Terms.Handling.Defer
	if terms.Stream != "" && q.o.Streams == nil {
		return false
	}
	a := acceptance{q: q, r: r, terms: terms, header: header, refused: d}
	how := a.keep(w)
	q.o.Observer.Kept(rule, how)
	return how == "kept" || how == "limited"
}

// acceptance is a request that may be kept.
type acceptance struct {
	q       *Queue
	r       *http.Request
	header  http.Header
	refused *tidegate.Decision
	terms   *tidegate.Defer
	line    Line
	own     []Check          // of the deferring rule
	others  []tidegate.Check // all others but slots
}

// keep returns the outcome for Observer.Kept. It has answered if that is "kept" or "limited".
func (a *acceptance) keep(w http.ResponseWriter) string {
	q := a.q
	if q.draining.Load() {
		return "draining"
	}
	length := max(a.r.ContentLength, 0) // an unknown length shows while reading
	if length > a.terms.MaxBody {
		return "body"
	}
	if a.match(); len(a.own) == 0 {
		return "failed"
	}
	size := length + headerSize(a.header) + int64(len(a.r.RequestURI)) + overhead
	if a.terms.Stream == "" {
		if err := q.o.Store.Room(a.r.Context(), a.line, size, a.bounds()); err != nil {
			return why(err)
		}
	}
	if q.reading.Load() >= maxReading {
		return "full"
	}
	var charge tidegate.Charge
	d, visit := tidegate.NewGate(fixed(a.others), q.behind).EnterCharged(a.r.Context(), &tidegate.Request{Unattended: true}, &charge)
	if !d.OK {
		q.front.Answer(w, a.r, &d)
		return "limited"
	}
	giveBack := func() {
		ctx := context.WithoutCancel(a.r.Context())
		_, _ = visit.End(tidegate.Outcome{Void: true}), charge.Return(ctx) // if the store fails, the charge stands
	}
	from := reading{Reader: a.r.Body, all: &q.reading}
	defer from.done()
	body, err := io.ReadAll(io.LimitReader(&from, a.terms.MaxBody+1))
	if errors.Is(err, ErrFull) {
		giveBack()
		return "full"
	}
	if err != nil { // a request that fails because of its own client counts like any other
		charge.Keep()
		_ = visit.End(tidegate.Outcome{})
		return "failed"
	}
	if int64(len(body)) > a.terms.MaxBody {
		giveBack()
		return "body"
	}
	e := a.entry(body)
	before, err := a.put(e)
	if err != nil {
		giveBack()
		if !errors.Is(err, ErrFull) && !errors.Is(err, ErrClosed) {
			q.o.Log.Error("a request was not kept, and is refused", "rule", a.line.Rule, "err", err)
		}
		return why(err)
	}
	charge.Keep()
	_ = visit.End(tidegate.Outcome{}) // the outcome is unknown, so it stays charged
	a.accepted(w, e, before)
	return "kept"
}

// put keeps the entry, or appends it to the stream of the rule.
func (a *acceptance) put(e *Entry) (before int, err error) {
	if a.terms.Stream == "" {
		return a.q.o.Store.Add(a.r.Context(), e, a.bounds())
	}
	e.State = Queued
	return 0, a.q.o.Streams.Append(a.r.Context(), a.terms.Stream, a.terms.Places, e)
}

func why(err error) string {
	if errors.Is(err, ErrFull) {
		return "full"
	}
	return "failed"
}

// match finds the line of the request, and which checks are charged now and later.
func (a *acceptance) match() {
	a.q.front.Ask(a.r, func(ask *tidegate.Request) {
		ask.Looking = true
		for _, c := range a.q.o.Rules.Match(ask, nil) {
			switch {
			case c.Limit.Terms != nil && c.Limit.Terms.Rule == a.refused.Limit.Terms.Rule:
				if defers(&c) {
					c = alone(c)
					a.line = LineOf(&c)
					a.own = append(a.own, Check{Key: c.Key, Spec: c.Limit.CounterSpec(), Cost: c.Cost})
				}
			case c.Limit.Algorithm == tidegate.Concurrency: // a slot is taken for each attempt
			default:
				a.others = append(a.others, alone(c))
			}
		}
	})
}

// bounds returns what the store may keep. A key gets the same share of the bytes as of the places.
func (a *acceptance) bounds() Bounds {
	share := float64(a.terms.PerKey) / float64(a.terms.Places)
	least := float64(a.terms.MaxBody + 128<<10) // a request of the largest size always fits
	return Bounds{Places: a.terms.Places, PerKey: a.terms.PerKey, KeyBytes: int64(max(share*float64(a.q.o.Max), least))}
}

func (a *acceptance) entry(body []byte) *Entry {
	now := time.Now()
	e := &Entry{
		ID: NewID(), Line: a.line, Accepted: now, Expires: now.Add(a.terms.Keep), Keep: a.terms.Keep, Checks: a.own,
		Request: Request{Method: a.r.Method, URL: a.r.URL.RequestURI(), Host: a.r.Host, Peer: a.r.RemoteAddr, Header: a.header, Body: body},
	}
	for _, name := range a.q.o.Strip {
		delete(e.Request.Header, name)
	}
	e.Owner = ownerOf(e.ID, a.q.o.Identify(a.r))
	return e
}

// maxRetryAfter caps the wait that a client is told, and the wait that an upstream can ask for.
const maxRetryAfter = time.Hour

// accepted answers 202.
func (a *acceptance) accepted(w http.ResponseWriter, e *Entry, before int) {
	if e.State == Queued { // its workers decide what happens next
		writeStatus(w, a.r, http.StatusAccepted, statusOf(e, before))
		return
	}
	wait := a.refused.RetryAfter
	if l := a.refused.Limit; l.Period > 0 && l.Events > 0 && l.Algorithm != tidegate.Concurrency && l.Algorithm != tidegate.Quota {
		wait = max(wait, time.Duration(float64(l.Period)/float64(l.Events)*float64(before+1)))
	}
	h := w.Header()
	h.Set("Location", a.q.o.Path+e.ID)
	h.Set("Retry-After", seconds(wait))
	writeStatus(w, a.r, http.StatusAccepted, statusOf(e, before))
}

func seconds(d time.Duration) string {
	d = max(min(d, maxRetryAfter), time.Second)
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

// plain reports whether a request can be kept: it means the same if the gateway sends it later.
func plain(r *http.Request) bool {
	return r.Header.Get("Upgrade") == "" && r.Method != http.MethodConnect && len(r.Trailer) == 0 &&
		!strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc")
}
