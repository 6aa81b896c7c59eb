package listen

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// Problem is a response of a front end itself (RFC 9457), such as a refusal of a request
// that cannot be served.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`

	RetryAfter time.Duration `json:"-"` // 0 means no Retry-After
	Allow      string        `json:"-"` // the methods of a 405
	CloseConn  bool          `json:"-"` // the connection cannot be reused
}

// NewProblem returns a Problem with the title of its status.
func NewProblem(status int, detail string) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail}
}

// Write sends the problem as the response to a request with that method.
func (p *Problem) Write(w http.ResponseWriter, method string) {
	h := w.Header()
	h["Content-Type"] = []string{"application/problem+json"}
	h["X-Content-Type-Options"] = []string{"nosniff"}
	if p.RetryAfter > 0 {
		h["Retry-After"] = []string{strconv.FormatInt(int64((p.RetryAfter+time.Second-1)/time.Second), 10)}
	}
	if p.Allow != "" {
		h["Allow"] = []string{p.Allow}
	}
	if p.CloseConn {
		h["Connection"] = []string{"close"}
	}
	w.WriteHeader(p.Status)
	if method != http.MethodHead {
		raw, _ := json.Marshal(p) // strings and a number: this cannot fail
		_, _ = w.Write(raw)       // the client may be gone
	}
}
