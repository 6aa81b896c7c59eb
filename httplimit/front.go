package httplimit

import (
	"net/http"

	"tidegate.dev/tidegate"
)

// Front is the middleware of a Gate taken apart, for front ends that answer on behalf of
// another server: what to ask about a request, what to tell of the decision, and how to
// refuse. Options.OnDecision and Options.Fate are not used. [Options.Front] makes it.
type Front struct {
	o     Options
	known policies
}

// Front returns the parts of the middleware that o describes.
func (o Options) Front() *Front {
	o.check()
	return &Front{o: o, known: newPolicies(nil)}
}

// Ask calls f with what the middleware would ask a gate about r. The Request is valid until
// f returns; it lies in memory that is used again.
func (f *Front) Ask(r *http.Request, ask func(*tidegate.Request)) {
	a := gateRequests.Get().(*gateRequest)
	a.fill(r, &f.o.ClientIP)
	ask(&a.request)
	a.done()
}

// Describe sets the headers of the dialect for a request that was admitted.
func (f *Front) Describe(h http.Header, d *tidegate.Decision) {
	f.o.setLimitHeaders(h, d, f.known.of(d.Limit), &f.known)
}

// Answer answers a refusal to the client itself, exactly as the middleware does: a call of gRPC gets
// a status of gRPC.
func (f *Front) Answer(w http.ResponseWriter, r *http.Request, d *tidegate.Decision) {
	f.o.refuse(w, r, d, f.known.of(d.Limit), &f.known)
}

// Refuse answers a refusal to a proxy that asks, headers of the dialect included: always by the status
// of HTTP, whatever the request is that it asks about. A status of 0 means [Status].
func (f *Front) Refuse(w http.ResponseWriter, r *http.Request, d *tidegate.Decision, status int) {
	if status == 0 {
		status = Status(*d)
	}
	f.o.refuseWith(w, r, d, f.known.of(d.Limit), &f.known, status)
}
