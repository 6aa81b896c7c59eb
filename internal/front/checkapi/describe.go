package checkapi

import (
	_ "embed"
	"net/http"
)

// description is the API in OpenAPI 3.1. Every answer of the tests is held against it.
//
//go:embed openapi.yaml
var description []byte

func (s *Server) describe(w http.ResponseWriter, r *http.Request) {
	if p := s.guard.refuse(r); p != nil {
		s.turnAway(w, r, "", p)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		s.fail(w, r, "", notAllowed(r, "GET"))
		return
	}
	w.Header()["Content-Type"] = yamlType
	_, _ = w.Write(description) // the client may be gone
}
