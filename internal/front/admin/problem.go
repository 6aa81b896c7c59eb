package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// Problem is why a request was not done (RFC 9457).
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"` // a sentence for the operator
}

// Error returns the Detail.
func (p *Problem) Error() string { return p.Detail }

func problemf(status int, format string, args ...any) *Problem {
	return &Problem{"about:blank", http.StatusText(status), status, fmt.Sprintf(format, args...)}
}

// asProblem returns err as a Problem; an error of another type becomes one with status 500.
func asProblem(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	return problemf(http.StatusInternalServerError, "%v.", err)
}

func (p *Problem) answer(w http.ResponseWriter) { answer(w, p.Status, "application/problem+json", p) }

func answer(w http.ResponseWriter, status int, kind string, v any) {
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil { // only what is made here is answered with
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client may be gone
}
