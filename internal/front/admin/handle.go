package admin

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
)

const (
	// maxBody is more than any other request of this API needs.
	maxBody = 64 << 10
	// maxRules is the maximum length of rules to validate.
	maxRules = 4 << 20
)

// read answers GET with what f returns.
func (s *server) read(f func(*http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isRead(r) {
			notAllowed(w, r, "GET, HEAD")
			return
		}
		v, err := f(r)
		if err != nil {
			asProblem(err).answer(w)
			return
		}
		answer(w, http.StatusOK, "application/json", v)
	})
}

// ask answers POST of JSON, of at most limit bytes, with what f returns. It changes nothing.
func (s *server) ask(limit int64, f func(*http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := posted(w, r, limit); p != nil {
			p.answer(w)
			return
		}
		r, end := showProgress(w, r)
		v, err := f(r)
		end()
		if err != nil {
			asProblem(err).answer(w)
			return
		}
		answer(w, http.StatusOK, "application/json", v)
	})
}

// write answers POST of JSON with what f returns, and records it in the process log and the audit
// log.
func (s *server) write(f func(r *http.Request) (v any, d operation, err error)) http.Handler {
	return s.writeUpTo(maxBody, f)
}

// writeUpTo is write for bodies of at most limit bytes.
func (s *server) writeUpTo(limit int64, f func(r *http.Request) (v any, d operation, err error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := posted(w, r, limit); p != nil {
			p.answer(w)
			return
		}
		v, d, err := f(r)
		if d.action == "" {
			d.action = actionOf(r)
		}
		if err == nil && d.preview {
			answer(w, http.StatusOK, "application/json", v)
			return
		}
		o := operatorOf(r.Context())
		e := entryOf(o, r, d)
		line := append([]any{"who", o.Name, "peer", r.RemoteAddr, "path", r.URL.Path}, d.what...)
		if d.reason != "" {
			line = append(line, "reason", d.reason)
		}
		if err != nil {
			s.Log.Warn("admin: write failed", append(line, "err", err)...)
			e.Result, e.Error = Failed, err.Error()
			s.audit(e)
			asProblem(err).answer(w)
			return
		}
		s.Log.Info("admin: write", line...)
		if !d.routine || s.routine.take(d.action, o.Name) {
			s.audit(e)
		}
		answer(w, http.StatusOK, "application/json", v)
	})
}

// both answers GET and HEAD with reads, and everything else with writes.
func both(reads, writes http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case isRead(r):
			reads.ServeHTTP(w, r)
		case r.Method == http.MethodPost:
			writes.ServeHTTP(w, r)
		default:
			notAllowed(w, r, "GET, HEAD, POST")
		}
	})
}

// posted returns a problem if the request is not a POST of JSON, and nil if it is. It bounds the body
// to limit bytes.
func posted(w http.ResponseWriter, r *http.Request, limit int64) *Problem {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST")
		return problemf(http.StatusMethodNotAllowed, "%s takes POST, not %s.", r.URL.Path, r.Method)
	}
	// A form of another site cannot send this type.
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return problemf(http.StatusUnsupportedMediaType, "Send JSON, with Content-Type: application/json.")
	}
	r.Body = http.MaxBytesReader(w, r.Body, limit)
	return nil
}

func notAllowed(w http.ResponseWriter, r *http.Request, allow string) {
	w.Header().Set("Allow", allow)
	problemf(http.StatusMethodNotAllowed, "%s takes %s, not %s.", r.URL.Path, allow, r.Method).answer(w)
}

// decode reads the body, which is one JSON object of known fields.
func decode(r *http.Request, v any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil && d.More() {
		err = errors.New("there is more after the object")
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF):
		return problemf(http.StatusBadRequest, "The body is empty; send a JSON object.")
	}
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return problemf(http.StatusRequestEntityTooLarge, "The body is larger than %d bytes.", large.Limit)
	}
	return problemf(http.StatusBadRequest, "The body cannot be read: %v.", err)
}
