package gateway

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// problem is an answer of the gateway itself (RFC 9457): the request was not fit
// to be passed on, or there was nobody to pass it on to.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`

	retry time.Duration // when to come again; 0: not said
	allow string        // methods, for a 405
	hurt  bool          // the connection cannot be used further
}

func newProblem(status int, detail string) *problem {
	return &problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail}
}

func badRequest(detail string) *problem { return newProblem(http.StatusBadRequest, detail) }

// overload tells a client that it is not to blame, and when to come again.
func overload(detail string, retry time.Duration) *problem {
	p := newProblem(http.StatusServiceUnavailable, detail)
	p.retry = max(retry, time.Second)
	return p
}

func (p *problem) write(w http.ResponseWriter, method string) {
	h := w.Header()
	h["Content-Type"] = []string{"application/problem+json"}
	h["X-Content-Type-Options"] = []string{"nosniff"}
	if p.retry > 0 {
		h["Retry-After"] = []string{strconv.FormatInt(int64((p.retry+time.Second-1)/time.Second), 10)}
	}
	if p.allow != "" {
		h["Allow"] = []string{p.allow}
	}
	if p.hurt {
		h["Connection"] = []string{"close"}
	}
	w.WriteHeader(p.Status)
	if method != http.MethodHead {
		raw, _ := json.Marshal(p) // strings and a number: this cannot fail
		_, _ = w.Write(raw)       // the client may be gone
	}
}
