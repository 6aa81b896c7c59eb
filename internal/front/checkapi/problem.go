package checkapi

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// problem is why a question was not answered (RFC 9457).
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"` // a sentence

	allow string // methods, for a 405
	retry bool   // coming back soon may help
}

func problemf(status int, format string, args ...any) *problem {
	return &problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...)}
}

// badInput makes a sentence of what is wrong with what was sent.
func badInput(err error) *problem {
	return problemf(http.StatusBadRequest, "The question is not understood: %v.", err)
}

func (p *problem) write(w http.ResponseWriter) {
	h := w.Header()
	h["Content-Type"] = problemType
	h["X-Content-Type-Options"] = nosniff
	h["Cache-Control"] = noStore
	if p.allow != "" {
		h["Allow"] = []string{p.allow}
	}
	if p.retry {
		h["Retry-After"] = []string{"1"}
	}
	if p.Status == http.StatusUnauthorized {
		h["Www-Authenticate"] = []string{"Bearer"}
	}
	w.WriteHeader(p.Status)
	raw, _ := json.Marshal(p) // strings and a number: this cannot fail
	_, _ = w.Write(raw)       // the client may be gone
}

// Values of headers that many answers share. Nobody writes into them.
var (
	jsonType    = []string{"application/json"}
	problemType = []string{"application/problem+json"}
	yamlType    = []string{"application/yaml"}
	nosniff     = []string{"nosniff"}
	noStore     = []string{"no-store"}
)
