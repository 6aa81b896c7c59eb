package gateway

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// problem is a response of the gateway itself (RFC 9457): the request cannot be passed on,
// or no upstream is available.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`

	retryAfter time.Duration // 0 means no Retry-After
	allow      string        // methods, for a 405
	closeConn  bool          // the connection cannot be reused
}

func newProblem(status int, detail string) *problem {
	return &problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail}
}

func badRequest(detail string) *problem { return newProblem(http.StatusBadRequest, detail) }

// unavailable returns a 503 with a Retry-After of at least a second.
func unavailable(detail string, retry time.Duration) *problem {
	p := newProblem(http.StatusServiceUnavailable, detail)
	p.retryAfter = max(retry, time.Second)
	return p
}

func (p *problem) write(w http.ResponseWriter, method string) {
	h := w.Header()
	h["Content-Type"] = []string{"application/problem+json"}
	h["X-Content-Type-Options"] = []string{"nosniff"}
	if p.retryAfter > 0 {
		h["Retry-After"] = []string{strconv.FormatInt(int64((p.retryAfter+time.Second-1)/time.Second), 10)}
	}
	if p.allow != "" {
		h["Allow"] = []string{p.allow}
	}
	if p.closeConn {
		h["Connection"] = []string{"close"}
	}
	w.WriteHeader(p.Status)
	if method != http.MethodHead {
		raw, _ := json.Marshal(p) // strings and a number: this cannot fail
		_, _ = w.Write(raw)       // the client may be gone
	}
}
