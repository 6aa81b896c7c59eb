package httplimit

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"tidegate.dev/tidegate"
)

// ErrMissing is the Err of the Decision on a request that is refused because it
// has no key; see [Refuse].
var ErrMissing = errors.New("the request does not say who is asking")

// Status returns the HTTP status for a refusal: 429 when a limit is used up, or can
// never admit the cost; 403 for an access rule; 503 when the store could not answer, or
// a rule sheds load, since the client is not to blame; 400 for a request without a key.
// The Terms of a limit may set another status for the first two.
func Status(d tidegate.Decision) int {
	usual := http.StatusTooManyRequests
	switch l := d.Limit; {
	case errors.Is(d.Err, ErrMissing):
		return http.StatusBadRequest
	case d.Err != nil:
		return http.StatusServiceUnavailable
	case l != nil && l.Sheds():
		usual = http.StatusServiceUnavailable
	case l != nil && l.Algorithm == tidegate.Deny:
		usual = http.StatusForbidden
	}
	if d.Limit != nil && d.Limit.Terms != nil {
		return status(d.Limit.Terms.Answer, usual)
	}
	return usual
}

// The problem types that draft 11 registers.
const (
	quotaExceeded   = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	reducedCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
)

const (
	quotaTitle = "Request cannot be satisfied as assigned quota has been exceeded"
	// Around the seconds until a client may come again.
	tryAgain = "; try again in "
	againEnd = " s."
)

// SlipHeader is the header with the slip of a refusal: a text that the client can quote to the
// operators of the service, who can find out from it why the client was refused. The middleware
// does not make slips. If the response has one when the middleware refuses, the problem+json
// body has it, too, as its member slip.
const SlipHeader = "Refusal-Slip"

// problem is the body of a refusal (RFC 9457).
type problem struct {
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Detail   string   `json:"detail"`
	Violated []string `json:"violated-policies,omitempty"`
	Slip     string   `json:"slip,omitempty"`
}

// refuse answers a refused request. It leaves out Retry-After if trying again would not
// help: the cost can never fit, an access rule that does not shed load refuses, or the key is
// missing. A gRPC call gets a gRPC status,
// unless Options.Render is set.
func (o *Options) refuse(w http.ResponseWriter, r *http.Request, d *tidegate.Decision, p *policy, known *policies) {
	if o.Render == nil && isGRPC(r) {
		refuseGRPC(w, o.refusal(w.Header(), d, p, known))
		return
	}
	o.refuseWith(w, r, d, p, known, Status(*d))
}

// describeRefusal sets the headers of a refusal. It returns the decision that they describe,
// and the seconds of Retry-After.
func (o *Options) describeRefusal(h http.Header, d *tidegate.Decision, p *policy, known *policies) (told tidegate.Decision, retry int64) {
	told = o.told(d, p)
	o.setLimitHeaders(h, &told, p, known)
	if !d.Never && !errors.Is(d.Err, ErrMissing) {
		retry = retrySeconds(&told)
		h["Retry-After"] = []string{strconv.FormatInt(retry, 10)}
	}
	return told, retry
}

// refuseWith is refuse with the HTTP status that the front end chooses, also for gRPC calls: a proxy
// that asks about a gRPC call goes by the HTTP status.
func (o *Options) refuseWith(w http.ResponseWriter, r *http.Request, d *tidegate.Decision, p *policy, known *policies, status int) {
	h := w.Header()
	_, retry := o.describeRefusal(h, d, p, known)
	if status != http.StatusTooManyRequests { // which no cache stores (RFC 6585); others may be given to other clients
		h["Cache-Control"] = []string{"no-store"}
	}
	if o.Render != nil {
		o.Render(w, r, *d)
		return
	}
	body := bodies.Get().(*[]byte)
	defer bodies.Put(body)
	var kind string
	if d.Err == nil && p != nil && p.answer.Body != "" {
		var text string
		text, kind = p.body(d, retry)
		*body = append((*body)[:0], text...)
	} else if slip, text := h.Get(SlipHeader), prefersText(r.Header["Accept"]); !text && p.isUsual(d, status) {
		*body, kind = p.usual.appendJSON((*body)[:0], retry, slip), problemJSON
	} else {
		why := explain(d, p, retry, status)
		why.Slip = slip
		*body, kind = why.render((*body)[:0], text)
	}
	values := []string{kind, "nosniff"}
	h["Content-Type"], h["X-Content-Type-Options"] = values[:1:1], values[1:]
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(*body) // the client may be gone
	}
}

// bodies has buffers for the bodies of refusals, which are many under attack.
var bodies = sync.Pool{New: func() any { return new([]byte) }}

// render appends the body to b, as plain text or as JSON.
func (why *problem) render(b []byte, text bool) (body []byte, kind string) {
	if text {
		return append(append(b, why.Detail...), '\n'), "text/plain; charset=utf-8"
	}
	return why.appendJSON(b), problemJSON
}

const problemJSON = "application/problem+json"

// appendJSON appends what json.Marshal would return, without reflection, which takes longer than
// the decision.
func (why *problem) appendJSON(b []byte) []byte {
	b = appendString(append(b, `{"type":`...), why.Type)
	b = appendString(append(b, `,"title":`...), why.Title)
	b = strconv.AppendInt(append(b, `,"status":`...), int64(why.Status), 10)
	b = appendString(append(b, `,"detail":`...), why.Detail)
	for i, name := range why.Violated {
		if i == 0 {
			b = append(b, `,"violated-policies":[`...)
		} else {
			b = append(b, ',')
		}
		b = appendString(b, name)
	}
	if len(why.Violated) > 0 {
		b = append(b, ']')
	}
	return endJSON(b, why.Slip)
}

// endJSON appends the slip, if there is one, and the end of the body.
func endJSON(b []byte, slip string) []byte {
	if slip != "" {
		b = appendString(append(b, `,"slip":`...), slip)
	}
	return append(b, '}')
}

// appendString appends a string of JSON.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if !unescaped[s[i]] {
			quoted, _ := json.Marshal(s) // a string cannot fail
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// unescaped has the bytes that json.Marshal does not escape.
var unescaped = func() (is [256]bool) {
	for c := ' '; c <= '~'; c++ {
		is[c] = !strings.ContainsRune(`"\<>&`, c)
	}
	return is
}()

// explain returns the problem body of a refusal. It names the limit but not its numbers, which
// [NoHeaders] is to hide.
func explain(d *tidegate.Decision, p *policy, retry int64, status int) problem {
	again := tryAgain + strconv.FormatInt(retry, 10) + againEnd
	why := problem{Type: "about:blank", Title: http.StatusText(Status(*d)), Status: status}
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
	case p.sheds:
		why.Type = reducedCapacity
		why.Title = "Request cannot be satisfied due to temporary server capacity constraints"
		why.Detail = "There is not the capacity for all requests right now" + again
		return why
	case p.denies:
		why.Detail = "The policy " + p.name + " does not allow this request."
		if p.answer.Message != "" {
			why.Detail = p.answer.Message
		}
		return why
	}
	why.Type = quotaExceeded
	why.Title = quotaTitle
	why.Violated = []string{p.name}
	switch {
	case p.answer.Message != "":
		why.Detail = p.answer.Message
	case d.Never:
		why.Detail = "The request costs more than the policy " + p.name + " can ever admit."
	default:
		why.Detail = p.usedUp() + again
	}
	return why
}

// usedUp returns the sentence that nothing is left of p.
func (p *policy) usedUp() string {
	if p.slots {
		return "All slots of the policy " + p.name + " are taken"
	}
	return "The quota of the policy " + p.name + " is used up"
}
