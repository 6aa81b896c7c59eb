package httplimit

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"tidegate.dev/tidegate"
)

// visitKey is the key of the context value that holds the visit of a request.
type visitKey struct{}

// VisitOf is for handlers that see the body of the response, as a proxy does. If a
// Gate has admitted the request and its true cost is in that body, it returns the
// visit: look in the body for what [tidegate.Visit.Sources] names, and call
// Visit.Found before the handler returns. For all other requests it returns nil.
func VisitOf(ctx context.Context) *tidegate.Visit {
	visit, _ := ctx.Value(visitKey{}).(*tidegate.Visit)
	return visit
}

// withVisit returns the request for the handler: r, with visit in its context if the handler has to
// find the cost.
func withVisit(r *http.Request, visit *tidegate.Visit) *http.Request {
	if !slices.ContainsFunc(visit.Sources(), func(s string) bool { return strings.HasPrefix(s, "response.body.") }) {
		return r
	}
	return r.WithContext(context.WithValue(r.Context(), visitKey{}, visit))
}
