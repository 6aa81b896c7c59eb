package admin

import "net/http"

// overview answers what the first page shows.
func (s *server) overview(r *http.Request) (any, error) {
	return (&API{server: s}).Moment(r.Context()).Overview(), nil
}

// live streams what pages show, until the operator may not see it any more.
func (s *server) live(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method != http.MethodGet:
		notAllowed(w, r, "GET")
	case s.Live == nil:
		problemf(http.StatusNotFound, "There is nothing live here.").answer(w)
	default:
		s.Live.Stream(w, r, func() bool {
			o, p := s.guard.who(r)
			return p == nil && o.Role >= View
		})
	}
}
