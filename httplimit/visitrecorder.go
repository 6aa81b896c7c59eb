package httplimit

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"tidegate.dev/tidegate"
)

// visitRecorder follows a visit through the handler, to end it with what became of the request.
type visitRecorder struct {
	slot
	visit    *tidegate.Visit
	ctx      context.Context // the request's
	header   http.Header     // of the answer
	status   atomic.Int32    // of the answer; 0 means none yet
	finished bool            // the handler has returned, and did not panic
	fate     func() Fate     // called after that
}

// unknown is the status of an answer that the client had left before, or that was not
// written through this writer: no later status counts.
const unknown = -1

// recordVisit calls f with a writer that records what the end of the visit depends on, and
// ends the visit.
func recordVisit(visit *tidegate.Visit, fate func(*http.Request) Fate, w http.ResponseWriter, r *http.Request, f func(http.ResponseWriter)) {
	s := &visitRecorder{visit: visit, ctx: r.Context(), header: w.Header(), fate: func() Fate { return Served }}
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
func (s *visitRecorder) Detach() { s.visit.Detach() }

// Cancel implements held: it ends the visit.
func (s *visitRecorder) Cancel() error {
	if s.hijacked.Load() { // the answer, if any, did not pass through the writer
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

// answering returns the status to record for one that is about to be sent. It is unknown
// if the client has left: a proxy's 502 to nobody must not count as the answer.
func (s *visitRecorder) answering(status int) int32 {
	if s.ctx.Err() != nil {
		return unknown
	}
	return int32(status)
}

// answered records the first status that is not informational.
func (s *visitRecorder) answered(status int) {
	if s.status.Load() == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		s.status.CompareAndSwap(0, s.answering(status))
	}
}
