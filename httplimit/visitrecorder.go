package httplimit

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"tidegate.dev/tidegate"
)

// visitRecorder records the status that a handler sends, to end the visit with the outcome.
type visitRecorder struct {
	slot
	visit    *tidegate.Visit
	ctx      context.Context     // the request's
	writer   http.ResponseWriter // that the middleware was given
	header   http.Header         // of the answer
	status   atomic.Int32        // of the answer; 0 means none yet
	finished bool                // the handler has returned, and did not panic
	late     atomic.Bool         // the handler had not answered when it returned; see await
	fate     func() Fate         // called after the handler has returned; nil means Served
}

// unknown is recorded when the client left before the answer, or the answer was not written
// through this writer: no later status counts.
const unknown = -1

// recordVisit calls f with a writer that records what the end of the visit depends on, and
// ends the visit.
func recordVisit(visit *tidegate.Visit, fate func(*http.Request) Fate, w http.ResponseWriter, r *http.Request, f func(http.ResponseWriter)) {
	s := &visitRecorder{visit: visit, ctx: r.Context(), writer: w, header: w.Header()}
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

// returned is called when the handler has returned or panicked. It ends the visit, unless the
// status is yet to come.
func (s *visitRecorder) returned() {
	switch {
	case s.hijacked.Load():
		return
	case !s.finished || s.status.Load() != 0 || !s.visit.ByStatus():
	default:
		if status := statusBelow(s.writer); status != 0 {
			s.status.Store(s.answering(status))
		} else if s.answersLate() {
			s.await()
			return
		}
	}
	s.free()
}

// Detach implements held.
func (s *visitRecorder) Detach() { s.visit.Detach() }

// Cancel implements held: it ends the visit.
func (s *visitRecorder) Cancel() error {
	if s.hijacked.Load() { // the answer, if any, did not pass through the writer
		return s.visit.End(tidegate.Outcome{})
	}
	if s.finished && s.fate != nil {
		switch s.fate() {
		case Lost:
			return s.visit.End(tidegate.Outcome{})
		case Unsent:
			return s.visit.End(tidegate.Outcome{Void: true})
		}
	}
	s.findCosts()
	o := tidegate.Outcome{Status: max(0, int(s.status.Load()))}
	if s.status.Load() == 0 && s.finished && s.ctx.Err() == nil {
		o.Status = http.StatusOK // what the server answers for a handler that did not
	}
	return s.visit.End(o)
}

// findCosts tells the visit the costs that headers of the answer name.
func (s *visitRecorder) findCosts() {
	for _, source := range s.visit.Sources() {
		if name, ok := strings.CutPrefix(source, "response.header."); ok {
			if cost, err := strconv.ParseUint(s.header.Get(name), 10, 63); err == nil {
				s.visit.Found(source, int64(cost))
			}
		}
	}
}

// answering returns what to record for a status that is about to be sent. It is unknown if the
// client has left: a proxy's 502 to nobody must not count as the answer. After the handler has
// returned, an ended context does not show that: an outer middleware may have ended it.
func (s *visitRecorder) answering(status int) int32 {
	if s.ctx.Err() != nil && !s.late.Load() {
		return unknown
	}
	return int32(status)
}

// answered records the first status that is not informational.
func (s *visitRecorder) answered(status int) {
	if s.status.Load() == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		s.settle(s.answering(status))
	}
}

// settle records the first status. If await waits for it, it ends the visit.
func (s *visitRecorder) settle(status int32) {
	if s.status.CompareAndSwap(0, status) && s.late.Load() {
		s.free()
	}
}
