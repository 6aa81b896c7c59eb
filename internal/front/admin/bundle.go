package admin

import "net/http"

// bundle serves the rules in force to an instance that follows this one. It may wait for a change
// for as long as the follower asks for.
func (s *server) bundle(w http.ResponseWriter, r *http.Request) {
	switch {
	case !isRead(r):
		notAllowed(w, r, "GET, HEAD")
	case s.Feed == nil:
		problemf(http.StatusNotFound, "There are no rules here that another instance could follow.").answer(w)
	default:
		s.Feed.ServeHTTP(w, r)
	}
}
