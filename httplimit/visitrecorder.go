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
	ctx      context.Context     // the request's
	writer   http.ResponseWriter // that the middleware was given
	header   http.Header         // of the answer
	status   atomic.Int32        // of the answer; 0 means none yet
	finished bool                // the handler has returned, and did not panic
	late     atomic.Bool         // and had not answered: see await
	fate     func() Fate         // called after that; nil means Served
}

// unknown is the status of an answer that the client had left before, or that was not
// written through this writer: no later status counts.
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

// returned ends the visit when the handler has returned or panicked, unless its status is
// yet to come.
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

// answering returns the status to record for one that is about to be sent. It is unknown
// if the client has left: a proxy's 502 to nobody must not count as the answer. After the
// handler, others may have ended the context.
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

// settle keeps the first status. If that was awaited, it ends the visit.
func (s *visitRecorder) settle(status int32) {
	if s.status.CompareAndSwap(0, status) && s.late.Load() {
		s.free()
	}
}
