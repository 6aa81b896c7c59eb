package httplimit

import (
	"context"
	"net/http"
	"reflect"
	"strings"
	"time"

	"tidegate.dev/tidegate"
)

// A handler that returns without an answer was taken for one that answers 200, which is
// what net/http sends then. In a framework it may be anything: handlers of echo return an
// error, and the framework writes the status when all middleware is done; handlers of gin
// write to a writer of gin's own. So the status is looked for there, and waited for.

// statusBelow returns the status that was written past this middleware, to a writer below
// it, or that such a writer is going to write: gin's has one from the start, which is 200
// until it is changed. It is 0 if there is none.
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

// answersLate reports whether somebody else may write the status after this middleware. Only
// net/http's own writers are known to belong to nobody else.
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

// await leaves the visit to the status, which ends it when it is written through this
// middleware. Until then the charge stays. What is not answered by the end of the request is
// answered with 200, by the server.
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

// lateness is how long after the end of its context a request may still be answered: a
// middleware around this one may have ended the context, or the client by leaving.
const lateness = time.Second
