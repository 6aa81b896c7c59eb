package admin

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
)

// maxBody is more than any question here needs.
const maxBody = 64 << 10

// read answers GET with what f returns.
func (s *server) read(f func(*http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
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

// write answers POST of JSON with what f returns, and logs it: what is what f has
// understood, as pairs of names and values.
func (s *server) write(f func(r *http.Request) (v any, what []any, err error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			notAllowed(w, r, "POST")
			return
		}
		// A form of another site cannot send this type.
		if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
			problemf(http.StatusUnsupportedMediaType, "Send JSON, with Content-Type: application/json.").answer(w)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		v, what, err := f(r)
		who, _ := s.guard.who(r)
		line := append([]any{"who", who, "peer", r.RemoteAddr, "path", r.URL.Path}, what...)
		if err != nil {
			s.Log.Warn("admin: write failed", append(line, "err", err)...)
			asProblem(err).answer(w)
			return
		}
		s.Log.Info("admin: write", line...)
		answer(w, http.StatusOK, "application/json", v)
	})
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
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return problemf(http.StatusRequestEntityTooLarge, "The body is larger than %d bytes.", maxBody)
	}
	return problemf(http.StatusBadRequest, "The body cannot be read: %v.", err)
}
