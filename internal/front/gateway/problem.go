package gateway

import (
	"net/http"
	"time"

	"tidegate.dev/tidegate/internal/front/listen"
)

// problem is a response of the gateway itself: the request cannot be passed on, or no
// upstream is available.
type problem = listen.Problem

func badRequest(detail string) *problem { return listen.NewProblem(http.StatusBadRequest, detail) }

// unavailable returns a 503 with a Retry-After of at least a second.
func unavailable(detail string, retryAfter time.Duration) *problem {
	p := listen.NewProblem(http.StatusServiceUnavailable, detail)
	p.RetryAfter = max(retryAfter, time.Second)
	return p
}
