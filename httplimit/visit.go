package httplimit

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"tidegate.dev/tidegate"
)

// visitKey is where the context of a request has its visit.
type visitKey struct{}

// VisitOf is for handlers that see the body of the response, as a proxy does. It
// returns the visit of a request, admitted by a Gate, whose cost the body tells:
// look there for what [tidegate.Visit.Sources] name, and tell Visit.Found of it
// before the handler returns. It is nil for all other requests.
func VisitOf(ctx context.Context) *tidegate.Visit {
	visit, _ := ctx.Value(visitKey{}).(*tidegate.Visit)
	return visit
}

// withVisit returns r for the handler: the same, unless it has to find the cost.
func withVisit(r *http.Request, visit *tidegate.Visit) *http.Request {
	if !slices.ContainsFunc(visit.Sources(), func(s string) bool { return strings.HasPrefix(s, "response.body.") }) {
		return r
	}
	return r.WithContext(context.WithValue(r.Context(), visitKey{}, visit))
}
