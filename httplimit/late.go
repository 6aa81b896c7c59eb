package httplimit

import (
	"context"
	"net/http"
	"reflect"
	"strings"
	"time"

	"tidegate.dev/tidegate"
)

// When a handler returns without an answer, net/http sends 200. In a framework the status may
// still become another one: handlers of echo return an error, and the framework writes the
// status when all middleware is done; handlers of gin write to a writer of gin's own. So this
// file looks for the status in writers below, and waits for it.

// statusBelow returns the status that was written to a writer below this middleware, or that
// such a writer is going to write: gin's has one from the start, which is 200 until it is
// changed. It returns 0 if there is none.
func statusBelow(w http.ResponseWriter) int {
	for {
		if known, ok := w.(interface{ Status() int }); ok {
			writer, tells := w.(interface{ Written() bool })
			status := known.Status()
			if status >= 200 && (status != http.StatusOK || tells && writer.Written()) {
				return status
			}
		}
		inner, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return 0
		}
		w = inner.Unwrap()
	}
}

// answersLate reports whether a framework may write the status after this middleware has
// returned. It is false for net/http's own writers, if the context has ended, and if
// Options.Fate tells the outcome.
func (s *visitRecorder) answersLate() bool {
	return s.ctx.Err() == nil && s.fate == nil && !ofServer(s.writer)
}

// ofServer reports whether w is a writer of net/http, perhaps wrapped by this package.
func ofServer(w http.ResponseWriter) bool {
	for {
		own, ok := w.(interface{ wrapped() http.ResponseWriter })
		if !ok {
			break
		}
		w = own.wrapped()
	}
	t := reflect.TypeOf(w)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.PkgPath() == "net/http" || strings.HasPrefix(t.PkgPath(), "net/http/")
}

func (w recordingWriter) wrapped() http.ResponseWriter { return w.ResponseWriter }
func (w watchedWriter) wrapped() http.ResponseWriter   { return w.ResponseWriter }

// await ends the visit when a status is written through this middleware. Until then the charge
// stays. If there is none by the end of the request, the server answers with 200, and that
// counts.
func (s *visitRecorder) await() {
	s.findCosts() // now: at the end the headers belong to the server
	s.late.Store(true)
	unanswered := func() {
		time.AfterFunc(lateness, func() { _ = s.visit.End(tidegate.Outcome{Status: http.StatusOK}) })
	}
	if s.ctx.Done() == nil { // a test calls the handler itself
		unanswered()
		return
	}
	context.AfterFunc(s.ctx, unanswered)
}

// lateness is how long await waits for a status after the context has ended: the client may
// have left, or an outer middleware may have ended the context.
const lateness = time.Second
