package deferq

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"tidegate.dev/tidegate"
)

// Status is the status of a request, for its sender.
type Status struct {
	ID       string    `json:"id"`
	State    State     `json:"state"`
	Accepted time.Time `json:"accepted"`
	Expires  time.Time `json:"expires,omitzero"`
	// Position in line: 1 is the next of its key; 0 once it has ended.
	Position int           `json:"position,omitempty"`
	Attempts int           `json:"attempts"`
	Next     time.Time     `json:"next_attempt,omitzero"`
	Reason   string        `json:"reason,omitempty"`
	Ended    time.Time     `json:"ended,omitzero"`
	Result   *StatusResult `json:"result,omitempty"`
}

// StatusResult is the answer of the upstream.
type StatusResult struct {
	Status int         `json:"status"`
	Header http.Header `json:"headers,omitempty"`
	Body   string      `json:"body,omitempty"`
	// Base64 is the body if it is not text.
	Base64    []byte `json:"body_base64,omitempty"`
	Truncated bool   `json:"truncated,omitempty"`
}

func statusOf(e *Entry, before int) *Status {
	s := &Status{ID: e.ID, State: e.State, Accepted: e.Accepted.UTC().Round(0), Attempts: e.Attempts, Reason: e.Reason}
	if e.State == Waiting || e.State == Trying {
		s.Position, s.Expires = before+1, e.Expires.UTC().Round(0)
		if e.Next.After(time.Now()) {
			s.Next = e.Next.UTC().Round(0)
		}
	} else {
		s.Ended = e.Ended.UTC().Round(0)
	}
	if r := e.Result; r != nil {
		s.Result = &StatusResult{Status: r.Status, Header: r.Header, Truncated: r.Truncated}
		if utf8.Valid(r.Body) {
			s.Result.Body = string(r.Body)
		} else {
			s.Result.Base64 = r.Body
		}
	}
	return s
}

// maxWatching is how many clients may ask for a status at once.
const maxWatching = 64

// ServeHTTP shows the sender of a request its status. For everybody else the request does not
// exist.
func (q *Queue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "Ask with GET.", http.StatusMethodNotAllowed)
		return
	}
	e, before, err := q.look(r.Context(), strings.TrimPrefix(r.URL.Path, q.o.Path))
	switch {
	case errors.Is(err, errCrowd):
		w.Header().Set("Retry-After", "1")
		http.Error(w, "Too many clients are asking for the status of their requests.", http.StatusServiceUnavailable)
	case err == nil && !owns(e, q.o.Identify(r)), errors.Is(err, ErrNone):
		http.Error(w, "There is no such request, or it is not yours.", http.StatusNotFound)
	case err != nil:
		q.o.Log.Error("a deferred request cannot be read", "err", err)
		w.Header().Set("Retry-After", "1")
		http.Error(w, "The status cannot be read right now; try again later.", http.StatusServiceUnavailable)
	default:
		if e.State == Waiting || e.State == Trying {
			w.Header().Set("Retry-After", seconds(max(time.Until(e.Next), time.Second)))
		}
		writeStatus(w, r, http.StatusOK, statusOf(e, before))
	}
}

// errCrowd means that too many clients are asking at once.
var errCrowd = errors.New("too many clients ask for the status of requests")

// look reads an entry. It counts against maxWatching only while it reads, so slow clients block
// nobody.
func (q *Queue) look(ctx context.Context, id string) (e *Entry, before int, err error) {
	defer q.watching.Add(-1)
	if q.watching.Add(1) > maxWatching {
		return nil, 0, errCrowd
	}
	return q.o.Store.Get(ctx, id)
}

func writeStatus(w http.ResponseWriter, r *http.Request, code int, s *Status) {
	raw, err := json.Marshal(s)
	if err != nil {
		http.Error(w, "The status cannot be shown.", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	if r.Method != http.MethodHead {
		_, _ = w.Write(append(raw, '\n')) // the client may be gone
	}
}

// ownerOf hashes the identities of the sender: the store should reveal no more than needed.
func ownerOf(id string, identities map[string]string) map[string]string {
	owner := make(map[string]string, len(identities))
	for name, value := range identities {
		sum := sha256.Sum256([]byte(tidegate.Key(id, name) + value))
		owner[name] = hex.EncodeToString(sum[:])
	}
	return owner
}

// owns reports whether the asking client has all identities that the sender had.
func owns(e *Entry, identities map[string]string) bool {
	asks := ownerOf(e.ID, identities)
	same := len(e.Owner) > 0
	for name, hash := range e.Owner {
		same = subtle.ConstantTimeCompare([]byte(hash), []byte(asks[name])) == 1 && same
	}
	return same
}
