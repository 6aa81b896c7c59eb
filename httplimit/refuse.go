package httplimit

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"tidegate.dev/tidegate"
)

// ErrMissing is the Err of the Decision on a request that is refused because it
// has no key; see [Refuse].
var ErrMissing = errors.New("the request does not say who is asking")

// Status is the status that a refusal is answered with: 429 when a limit is used
// up, or can never admit what the request costs; 503 when the store could not
// tell, for which the client is not to blame; 400 for want of a key.
func Status(d tidegate.Decision) int {
	switch {
	case errors.Is(d.Err, ErrMissing):
		return http.StatusBadRequest
	case d.Err != nil:
		return http.StatusServiceUnavailable
	}
	return http.StatusTooManyRequests
}

// quotaExceeded is the problem type that draft 11 registers.
const quotaExceeded = "https://iana.org/assignments/http-problem-types#quota-exceeded"

// problem is the body of a refusal (RFC 9457).
type problem struct {
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Detail   string   `json:"detail"`
	Violated []string `json:"violated-policies,omitempty"`
}

// refuse answers a request that may not pass. A Retry-After is left out where
// coming again would not help: a cost that can never fit, a key that is missing.
func (o *Options) refuse(w http.ResponseWriter, r *http.Request, d *tidegate.Decision, p *policy) {
	h := w.Header()
	retry := int64(0)
	if !d.Never && !errors.Is(d.Err, ErrMissing) {
		retry = retrySeconds(d)
		h["Retry-After"] = []string{strconv.FormatInt(retry, 10)}
	}
	if o.Render != nil {
		o.Render(w, r, *d)
		return
	}
	why := explain(d, p, retry)
	body, kind := []byte(why.Detail+"\n"), "text/plain; charset=utf-8"
	if !prefersText(r.Header["Accept"]) {
		// Only strings and an int: this cannot fail.
		body, _ = json.Marshal(why)
		kind = "application/problem+json"
	}
	h["Content-Type"] = []string{kind}
	h["X-Content-Type-Options"] = []string{"nosniff"}
	w.WriteHeader(why.Status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the client may be gone
	}
}

// explain says no more of the limit than its name: with [NoHeaders] the numbers
// are nobody's business.
func explain(d *tidegate.Decision, p *policy, retry int64) problem {
	again := "; try again in " + strconv.FormatInt(retry, 10) + " s."
	why := problem{Type: "about:blank", Status: Status(*d)}
	why.Title = http.StatusText(why.Status)
	switch {
	case errors.Is(d.Err, ErrMissing):
		why.Detail = "The request does not say who is asking, which its limit goes by."
		return why
	case d.Err != nil:
		why.Detail = "The limits of this service cannot be checked right now" + again
		return why
	case p == nil:
		why.Detail = "Too many requests" + again
		return why
	}
	why.Type = quotaExceeded
	why.Title = "Request cannot be satisfied as assigned quota has been exceeded"
	why.Violated = []string{p.name}
	switch {
	case d.Never:
		why.Detail = "The request costs more than the policy " + p.name + " can ever admit."
	case p.slots:
		why.Detail = "All slots of the policy " + p.name + " are taken" + again
	default:
		why.Detail = "The quota of the policy " + p.name + " is used up" + again
	}
	return why
}
