package httplimit

import (
	"net/http"
	"sync"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/sleep"
)

// Gate is shorthand for Options{}.Gate(gate).
func Gate(gate *tidegate.Gate) func(http.Handler) http.Handler { return Options{}.Gate(gate) }

// Gate returns middleware that asks gate about every request. Beyond the method, host
// and path, rules can read:
//
//	ip                the client's address by ClientIP, as a key: IPv6 by /64
//	ip /24 /48        the same by these prefix lengths for IPv4 and IPv6
//	addr              the client's whole address
//	header NAME       a header, believed only from a trusted proxy: see ClientIP
//	client header NAME  a header, from anyone: the client chooses the value
//	cookie NAME, query NAME, path {NAME}
//	body.NAME         a value of a JSON body or a form of up to 64 KiB
//	basic.user        the user name of basic authentication
//	tls.client_cn     the common name of the client's verified certificate
//	route             the pattern of the ServeMux that called this middleware, if one did
//
// An empty value counts as missing. So do two different values of one name, be they
// headers, cookies, query parameters or body fields. Values are looked up only when a
// rule asks for them; a Matcher must not keep the Request or its Values.
//
// A request that a rule queues waits here for its turn. If its context ends first, because the
// client leaves or by a deadline, the handler is not called, and the answer is 503. (If an HTTP/1
// request has a body, net/http does not notice that the client has left until the body is read.)
// Slots are held as with Limit. A limit that counts by status
// counts the status that the client got. The request stays charged when there was none
// (the client left, the handler panicked, the connection was hijacked) and when
// Options.Fate says that the status is not the server's. An estimate is settled by the
// response header that its rule names, once the handler has returned. An estimate that
// is settled by the response body stays charged unless the handler reports the cost,
// because the middleware does not read bodies: see [VisitOf].
//
// Refusals are answered by Options.Render if it is set, otherwise as the limit's Terms
// say, otherwise with a problem+json body and the code of [Status].
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

// gateRequest holds what a Gate is asked about one request. It is pooled.
type gateRequest struct {
	request tidegate.Request
	values  values
	charge  tidegate.Charge // used only if Options.Fate is set
}

var gateRequests = sync.Pool{New: func() any { return new(gateRequest) }}

func (h *gateHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := gateRequests.Get().(*gateRequest)
	a.fill(r, &h.ClientIP)
	if h.Fate != nil {
		h.serveCharged(w, r, a)
		return
	}
	d, visit := h.gate.Enter(r.Context(), &a.request)
	a.done()
	h.serve(w, r, &d, visit)
}

// serveCharged serves a request, and gives its charge back if Options.Fate returns Unsent.
// If the handler panics, the charge stands and a does not return to the pool.
func (h *gateHandler) serveCharged(w http.ResponseWriter, r *http.Request, a *gateRequest) {
	d, visit := h.gate.EnterCharged(r.Context(), &a.request, &a.charge)
	h.serve(w, r, &d, visit)
	if d.OK && h.Fate(r) == Unsent {
		_ = a.charge.Return(r.Context()) // if the store fails, the charge stands
	} else {
		a.charge.Keep()
	}
	a.done()
}

// done returns a to the pool.
func (a *gateRequest) done() {
	a.request.Reset()
	a.values = values{}
	gateRequests.Put(a)
}

// serve answers the request by d. It ends visit, unless that is nil, when the handler has
// returned.
func (h *gateHandler) serve(w http.ResponseWriter, r *http.Request, d *tidegate.Decision, visit *tidegate.Visit) {
	if visit == nil {
		h.answer(w, r, d)
		return
	}
	recordVisit(visit, h.Fate, w, r, func(w http.ResponseWriter) { h.answer(w, withVisit(r, visit), d) })
}

// answer refuses the request, or calls the handler, after waiting if the Decision says so.
func (h *gateHandler) answer(w http.ResponseWriter, r *http.Request, d *tidegate.Decision) {
	h.observe(r, d)
	p := h.known.of(d.Limit)
	if !d.OK {
		if h.OnRefusal != nil && h.OnRefusal(w, r, *d) {
			return
		}
		h.refuse(w, r, d, p, &h.known)
		return
	}
	h.setLimitHeaders(w.Header(), d, p, &h.known)
	if d.Wait > 0 {
		if err := sleep.For(r.Context(), d.Wait); err != nil {
			// If the client is still there, its request ended by a deadline of the server:
			// nothing written would be a 200.
			h.refuse(w, r, &tidegate.Decision{Err: err, RetryAfter: time.Second, Limit: d.Limit}, p, &h.known)
			return
		}
	}
	h.next.ServeHTTP(w, r)
}
