package httplimit

import (
	"net/http"

	"tidegate.dev/tidegate"
)

// Limit is shorthand for Options{}.Limit(lim, key).
func Limit(lim *tidegate.Limiter, key KeyFunc) func(http.Handler) http.Handler {
	return Options{}.Limit(lim, key)
}

// Limit returns middleware that charges lim one event per request, under the
// key that key finds in the request. If key returns "alice", lim.Peek(ctx,
// "alice") reads the same counter; see [KeyFunc] for the exceptions.
// Options.Missing says what happens to a request without a key.
//
// When lim has a Concurrency limit, the request holds a slot until its handler
// returns or panics or its client goes away. If the handler hijacks the
// connection, the slot is held until that is closed.
//
// Limits nest: a handler may be wrapped in several. Each is charged when the
// request reaches it, also if an inner one refuses, so put the one that refuses
// most outside. Or give one Limiter several limits: they are charged together or
// not at all.
func (o Options) Limit(lim *tidegate.Limiter, key KeyFunc) func(http.Handler) http.Handler {
	if lim == nil {
		panic("httplimit: Limit: the limiter is nil")
	}
	if key == nil {
		panic("httplimit: Limit: the key function is nil; for one counter per client address use IP()")
	}
	o.check()
	base := limitHandler{Options: o, lim: lim, key: key, known: newPolicies(lim.Limits())}
	for _, l := range lim.Limits() {
		base.holds = base.holds || l.Algorithm == tidegate.Concurrency
	}
	return func(next http.Handler) http.Handler {
		h := base
		h.next = next
		return &h
	}
}

type limitHandler struct {
	Options
	lim   *tidegate.Limiter
	key   KeyFunc
	known policies
	holds bool // lim has a Concurrency limit, so requests hold slots
	next  http.Handler
}

func (h *limitHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key, counted, err := h.limiterKey(r, h.key)
	switch {
	case err != nil:
		d := tidegate.Decision{Err: err}
		h.observe(r, &d)
		h.refuse(w, r, &d, nil, &h.known)
		return
	case !counted:
		h.next.ServeHTTP(w, r)
		return
	}
	if h.holds {
		held := h.lim.Acquire(r.Context(), key)
		(&slot{held: held}).serve(w, func(w http.ResponseWriter) {
			if h.admit(w, r, &held.Decision) {
				h.next.ServeHTTP(w, r)
			}
		})
		return
	}
	d := h.lim.Allow(r.Context(), key)
	if h.admit(w, r, &d) {
		h.next.ServeHTTP(w, r)
	}
}

// admit tells the client and the observer about d, and answers a refusal. It reports
// whether the handler is to be called.
func (h *limitHandler) admit(w http.ResponseWriter, r *http.Request, d *tidegate.Decision) bool {
	h.observe(r, d)
	p := h.known.of(d.Limit)
	if !d.OK {
		h.refuse(w, r, d, p, &h.known)
		return false
	}
	h.setLimitHeaders(w.Header(), d, p, &h.known)
	return true
}
