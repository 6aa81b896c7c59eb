package admin

import (
	_ "embed"
	"net/http"
)

// description is the OpenAPI file of this API.
//
//go:embed openapi.yaml
var description []byte

// describeAPI serves the file.
func describeAPI(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		notAllowed(w, r, "GET, HEAD")
		return
	}
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(description) // the client may be gone
}
