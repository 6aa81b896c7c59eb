package httplimit

import (
	"net/http"
	"time"

	"tidegate.dev/tidegate"
)

// Front has the parts of the middleware, for front ends that answer on behalf of another
// server: what to ask about a request, how to describe the decision, and how to refuse.
// It does not use Options.OnDecision, OnRefusal and Fate. [Options.Front] makes one.
type Front struct {
	o     Options
	known policies
}

// Front returns the parts of the middleware that o describes. limits are those of a
// Limiter, which every answer lists; for a Gate pass none.
func (o Options) Front(limits ...*tidegate.Limit) *Front {
	o.check()
	return &Front{o: o, known: newPolicies(limits)}
}

// Key returns the key that the middleware of Limit counts r by. If find has none,
// Options.Missing decides: counted is false for Skip, and err is ErrMissing for Refuse.
func (f *Front) Key(r *http.Request, find KeyFunc) (key string, counted bool, err error) {
	return f.o.limiterKey(r, find)
}

// Ask calls ask with what the middleware would ask a gate about r. The Request is valid only
// until ask returns, because its memory is reused.
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

// Answer sends a refusal to the client itself, exactly as the middleware does: a gRPC call gets a
// gRPC status.
func (f *Front) Answer(w http.ResponseWriter, r *http.Request, d *tidegate.Decision) {
	f.o.refuse(w, r, d, f.known.of(d.Limit), &f.known)
}

// Refuse sends a refusal, with the headers of the dialect, to a proxy that asks about r: always with an
// HTTP status, even if r is a gRPC call. A status of 0 means [Status].
func (f *Front) Refuse(w http.ResponseWriter, r *http.Request, d *tidegate.Decision, status int) {
	if status == 0 {
		status = Status(*d)
	}
	f.o.refuseWith(w, r, d, f.known.of(d.Limit), &f.known, status)
}

// Refusal is what a refused client is told, for front ends of other protocols than HTTP.
type Refusal struct {
	// GRPCCode is the code of gRPC for the [Status]. It is UNAUTHENTICATED if the request does
	// not say who is asking.
	GRPCCode int
	// Policy is the name of the limit that is used up; "" if the refusal has another reason.
	Policy string
	// Detail says why, in a sentence.
	Detail string
	// RetryAfter is after how long to try again, with RetryJitter; 0 if that would not help.
	RetryAfter time.Duration
}

// Refusal sets the headers that describe a refusal, and returns what else the client is told.
func (f *Front) Refusal(h http.Header, d *tidegate.Decision) Refusal {
	return f.o.refusal(h, d, f.known.of(d.Limit), &f.known)
}

func (o *Options) refusal(h http.Header, d *tidegate.Decision, p *policy, known *policies) Refusal {
	told, retry := o.describeRefusal(h, d, p, known)
	why := explain(d, p, retry, Status(*d))
	r := Refusal{GRPCCode: grpcCode(d), Detail: why.Detail}
	if len(why.Violated) > 0 {
		r.Policy = why.Violated[0]
	}
	if retry > 0 {
		r.RetryAfter = retryAfter(&told)
	}
	return r
}
