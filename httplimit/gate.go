package httplimit

import (
	"context"
	"net/http"
	"sync"
	"time"

	"tidegate.dev/tidegate"
)

// Gate is shorthand for Options{}.Gate(gate).
func Gate(gate *tidegate.Gate) func(http.Handler) http.Handler { return Options{}.Gate(gate) }

// Gate returns middleware that puts every request to gate. What the rules can
// ask about a request, beyond its method, host and path:
//
//	ip                the client's address by ClientIP, as a key: IPv6 by /64
//	ip /24 /48        the same by these prefix lengths for IPv4 and IPv6
//	header NAME       a header, believed only from a trusted proxy: see ClientIP
//	client header NAME  a header, from anyone: the client chooses the value
//	cookie NAME, query NAME, path {NAME}
//	route             the pattern of the ServeMux that matched, if it is outside
//
// A value that is empty counts as missing, and so do two that differ: headers,
// cookies, query parameters or body fields of one name. Values are looked up when a rule
// asks; a Matcher must not keep the Request or its Values.
//
// A request that a rule lets wait its turn waits here, until its client leaves.
// Slots are held as with Limit. What is counted by status is counted by the status
// that the client got; it stays charged when there was none, as when the client
// left, the handler panicked or the connection was hijacked, or if Options.Fate says
// that the status is not the server's. An estimate is settled
// by the response header that its rule names, once the handler has returned. One
// that is to be settled by the body of the response stays charged as it is, unless
// the handler finds the cost: the middleware does not read what passes through it.
// See [VisitOf].
//
// A refusal is answered as the Terms of the limit say, where they say it. An access
// rule is answered 403.
func (o Options) Gate(gate *tidegate.Gate) func(http.Handler) http.Handler {
	if gate == nil {
		panic("httplimit: Gate: the gate is nil")
	}
	o.check()
	base := gateHandler{Options: o, gate: gate, known: newPolicies(nil)}
	return func(next http.Handler) http.Handler {
		h := base
		h.next = next
		return &h
	}
}

type gateHandler struct {
	Options
	gate  *tidegate.Gate
	known policies
	next  http.Handler
}

// gateRequest is a request as a Gate is asked about it, with its memory. It is pooled.
type gateRequest struct {
	request tidegate.Request
	values  values
	charge  tidegate.Charge // empty unless there is a Fate
}

var gateRequests = sync.Pool{New: func() any { return new(gateRequest) }}

func (h *gateHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := gateRequests.Get().(*gateRequest)
	a.describe(r, &h.ClientIP)
	if h.Fate != nil {
		h.serveCharged(w, r, a)
		return
	}
	d, visit := h.gate.Enter(r.Context(), &a.request)
	a.done()
	h.serve(w, r, d, visit)
}

// serveCharged keeps what was charged until the handler has returned. If that
// panics, it stays charged, and a is left to the garbage collector.
func (h *gateHandler) serveCharged(w http.ResponseWriter, r *http.Request, a *gateRequest) {
	d, visit := h.gate.EnterCharged(r.Context(), &a.request, &a.charge)
	h.serve(w, r, d, visit)
	if d.OK && h.Fate(r) == Unsent {
		_ = a.charge.Return(r.Context()) // not reached: it stays charged
	} else {
		a.charge.Keep()
	}
	a.done()
}

// done puts a back for another request.
func (a *gateRequest) done() {
	a.request.Reset()
	a.values = values{}
	gateRequests.Put(a)
}

func (h *gateHandler) serve(w http.ResponseWriter, r *http.Request, d tidegate.Decision, visit *tidegate.Visit) {
	if visit == nil {
		h.answer(w, r, d)
		return
	}
	recordVisit(visit, h.Fate, w, r, func(w http.ResponseWriter) { h.answer(w, withVisit(r, visit), d) })
}

func (h *gateHandler) answer(w http.ResponseWriter, r *http.Request, d tidegate.Decision) {
	h.observe(r, &d)
	p := h.known.of(d.Limit)
	if !d.OK {
		h.refuse(w, r, &d, p, &h.known)
		return
	}
	h.describe(w.Header(), &d, p, &h.known)
	if d.Wait > 0 && !sleep(r.Context(), d.Wait) {
		return
	}
	h.next.ServeHTTP(w, r)
}

// sleep waits for d, or reports false when the client left.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
