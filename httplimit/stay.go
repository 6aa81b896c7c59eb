package httplimit

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"tidegate.dev/tidegate"
)

// stay is a visit to a gate on its way through the handler.
type stay struct {
	slot
	visit    *tidegate.Visit
	ctx      context.Context // the request's
	header   http.Header     // of the answer
	status   atomic.Int32    // of the answer; 0: none yet, or unknown
	finished bool            // the handler has returned, and did not panic
	fate     func() Fate     // once it has
}

// unknown is the status of an answer that the client was not there to get, or
// that is not ours: it is no more to be learned.
const unknown = -1

// stayFor calls f with a writer that notices what has to be known at the end of
// the visit, and ends it.
func stayFor(visit *tidegate.Visit, fate func(*http.Request) Fate, w http.ResponseWriter, r *http.Request, f func(http.ResponseWriter)) {
	s := &stay{visit: visit, ctx: r.Context(), header: w.Header(), fate: func() Fate { return Served }}
	if fate != nil {
		s.fate = func() Fate { return fate(r) }
	}
	s.held = s
	defer s.returned()
	if visit.Holds() {
		w = s.watch(w)
	}
	if visit.ByStatus() {
		w = s.record(w)
	}
	f(w)
	s.finished = true
}

// Detach implements held.
func (s *stay) Detach() { s.visit.Detach() }

// Cancel implements held: it ends the visit.
func (s *stay) Cancel() error {
	if s.hijacked.Load() { // the answer, if there was one, was not ours
		return s.visit.End(tidegate.Outcome{})
	}
	if s.finished {
		switch s.fate() {
		case Lost:
			return s.visit.End(tidegate.Outcome{})
		case Unsent:
			return s.visit.End(tidegate.Outcome{Void: true})
		}
	}
	for _, source := range s.visit.Sources() {
		if name, ok := strings.CutPrefix(source, "response.header."); ok {
			if cost, err := strconv.ParseUint(s.header.Get(name), 10, 63); err == nil {
				s.visit.Found(source, int64(cost))
			}
		}
	}
	o := tidegate.Outcome{Status: max(0, int(s.status.Load()))}
	if s.status.Load() == 0 && s.finished && s.ctx.Err() == nil {
		o.Status = http.StatusOK // what the server answers for a handler that did not
	}
	return s.visit.End(o)
}

// answering is what is to be learned from a status that is about to be sent. Who
// has left is not told: a proxy's 502 to nobody must not count as the answer.
func (s *stay) answering(status int) int32 {
	if s.ctx.Err() != nil {
		return unknown
	}
	return int32(status)
}

// answered learns the first status that is not informational.
func (s *stay) answered(status int) {
	if s.status.Load() == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		s.status.CompareAndSwap(0, s.answering(status))
	}
}
