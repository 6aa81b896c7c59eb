// Package httplimit limits the requests of a net/http server.
//
// Start with [Limit]: it joins a [tidegate.Limiter] with a [KeyFunc], which says
// who is asking, and returns ordinary middleware.
//
//	lim := tidegate.New(memory.New(), tidegate.PerMinute(100))
//	http.Handle("/api/", httplimit.Limit(lim, httplimit.IP())(api))
//
// A refused request is answered with 429, Retry-After and a problem+json body; a refused
// gRPC call gets the gRPC status RESOURCE_EXHAUSTED. The answer to every request that a limit
// has decided carries the RateLimit fields of the IETF. [Options] changes that. [Gate] does the
// same for a [tidegate.Gate], where rules say who is counted and for what.
//
// The package decides nothing itself: the numbers in the headers are those of
// the one Decision that admitted or refused the request. It is not a
// reverse proxy and does not authenticate: a [Header] or [ContextValue] is as
// trustworthy as whoever put it there.
package httplimit
