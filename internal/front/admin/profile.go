package admin

import (
	"net/http"
	"net/http/pprof"
	"strconv"
	"time"
)

// maxProfile bounds how long a profile may take: each of them slows the process down.
const maxProfile = time.Minute

// profiles serves profiles of the process. At most one that takes time runs at once, and at most two
// of the others, which stop the world to count objects.
type profiles struct {
	timed, instant chan struct{}
}

// handler serves /debug/pprof/.
func (p *profiles) handler() http.Handler {
	p.timed, p.instant = make(chan struct{}, 1), make(chan struct{}, 2)
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.Handle("/debug/pprof/profile", p.bounded(pprof.Profile, true))
	mux.Handle("/debug/pprof/trace", p.bounded(pprof.Trace, true))
	mux.Handle("/debug/pprof/", p.bounded(pprof.Index, false))
	return mux
}

// bounded limits how long f runs, and how many profiles run at once. With the parameter seconds, any
// profile takes time: it compares two instants.
func (p *profiles) bounded(f http.HandlerFunc, timed bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead { // a form could contain the seconds a second time
			notAllowed(w, r, "GET, HEAD")
			return
		}
		given := r.FormValue("seconds")
		if seconds, err := strconv.ParseFloat(given, 64); given != "" && (err != nil || !(seconds >= 0 && seconds <= maxProfile.Seconds())) {
			problemf(http.StatusBadRequest, "seconds has to be a number from 0 to %.0f, and is %q.", maxProfile.Seconds(), given).answer(w)
			return
		}
		places := p.instant
		if timed || given != "" {
			places = p.timed
		}
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
			f(w, r)
		default:
			w.Header().Set("Retry-After", "10")
			problemf(http.StatusServiceUnavailable, "Another profile is being taken; ask again when it is done.").answer(w)
		}
	})
}
