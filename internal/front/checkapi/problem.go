package checkapi

import (
	"fmt"
	"net/http"

	"tidegate.dev/tidegate/internal/front/listen"
)

// problem is why a question was not answered.
type problem = listen.Problem

func problemf(status int, format string, args ...any) *problem {
	return listen.NewProblem(status, fmt.Sprintf(format, args...))
}

// badInput returns the problem of an invalid request body or query.
func badInput(err error) *problem {
	return problemf(http.StatusBadRequest, "The question is not understood: %v.", err)
}

func notAllowed(r *http.Request, allow string) *problem {
	p := problemf(http.StatusMethodNotAllowed, "%s takes %s, not %s.", r.URL.Path, allow, r.Method)
	p.Allow = allow
	return p
}

func writeProblem(w http.ResponseWriter, r *http.Request, p *problem) {
	h := w.Header()
	h["Cache-Control"] = noStore
	if p.Status == http.StatusUnauthorized {
		h["Www-Authenticate"] = []string{"Bearer"}
	}
	p.Write(w, r.Method)
}

// Values of headers that many answers share. They must not be modified.
var (
	jsonType = []string{"application/json"}
	yamlType = []string{"application/yaml"}
	nosniff  = []string{"nosniff"}
	noStore  = []string{"no-store"}
)
