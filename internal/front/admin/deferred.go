package admin

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Deferred are the requests that rules keep for later. A dead one was given up. An error is answered
// with its text: a [*Problem] as it is, any other with status 500.
type Deferred interface {
	// List returns at most n requests that match a question; those of one rule and state come
	// oldest first.
	List(ctx context.Context, q DeferredQuestion, n int) (DeferredList, error)
	// Retry makes waiting requests due now; dead ones wait again, at the end of their lines. It
	// returns how many it changed. Requests that are being sent, done or were dropped stay as they
	// are; if q.ID names one of them, that is an error.
	Retry(ctx context.Context, q DeferredQuestion) (int, error)
	// Drop makes waiting requests dead, with that reason, and removes dead ones. It returns
	// how many it changed, and leaves out others as Retry does.
	Drop(ctx context.Context, q DeferredQuestion, reason string) (int, error)
	// Drain stops keeping new requests, or resumes it if on is false.
	Drain(on bool) error
}

// DeferredQuestion selects deferred requests.
type DeferredQuestion struct {
	ID    string `json:"id,omitempty"`
	Rule  string `json:"rule,omitempty"`
	State string `json:"state,omitempty"` // waiting, trying, done or dead
}

// DeferredList is what is kept. Only Requests and More depend on the question.
type DeferredList struct {
	Waiting  int64             `json:"waiting"` // including those being sent
	Done     int64             `json:"done"`
	Dead     int64             `json:"dead"`
	Bytes    int64             `json:"bytes"`
	Max      int64             `json:"max_bytes"`
	Draining bool              `json:"draining"` // no new requests are kept
	Problem  string            `json:"problem,omitempty"`
	Requests []DeferredRequest `json:"requests"`
	More     bool              `json:"more,omitempty"` // others match, too
}

// DeferredRequest is a deferred request. Its headers, body and query are not shown.
type DeferredRequest struct {
	ID       string    `json:"id"`
	Rule     string    `json:"rule"`
	Scope    string    `json:"scope,omitempty"`
	Key      string    `json:"key"`
	Method   string    `json:"method,omitempty"`
	Host     string    `json:"host,omitempty"`
	Path     string    `json:"path,omitempty"`
	State    string    `json:"state"`
	Position int       `json:"position,omitempty"` // in the line of its key
	Attempts int       `json:"attempts"`
	Accepted time.Time `json:"accepted"`
	Expires  time.Time `json:"expires,omitzero"`
	Next     time.Time `json:"next_attempt,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
	Reason   string    `json:"reason,omitempty"`
	Status   int       `json:"status,omitempty"` // status of the upstream's answer
}

// DeferredChange is the body of POST /deferred/retry, /deferred/drop and /deferred/drain.
type DeferredChange struct {
	DeferredQuestion
	Reason string `json:"reason,omitempty"` // for operators; of a drop, also for who sent the requests
	Off    bool   `json:"off,omitempty"`    // of a drain: keep requests again
}

// DeferredChanged is the number of affected requests.
type DeferredChanged struct {
	Changed int `json:"changed"`
}

const (
	usualDeferred = 50
	mostDeferred  = 1000
)

// deferred lists what is kept.
func (s *server) deferred(r *http.Request) (any, error) {
	query := r.URL.Query()
	if err := known(query, "id", "rule", "state", "n"); err != nil {
		return nil, err
	}
	if err := s.canDefer(); err != nil {
		return nil, err
	}
	n := usualDeferred
	if text := query.Get("n"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 || n > mostDeferred {
			return nil, problemf(http.StatusBadRequest, "n has to be from 1 to %d, and is %q.", mostDeferred, text)
		}
	}
	q := DeferredQuestion{query.Get("id"), query.Get("rule"), query.Get("state")}
	if err := q.check(); err != nil {
		return nil, err
	}
	list, err := s.Deferred.List(r.Context(), q, n)
	if err == nil && q.ID != "" && len(list.Requests) == 0 {
		return nil, problemf(http.StatusNotFound, "There is no deferred request %s.", strings.ToValidUTF8(q.ID, "?"))
	}
	if err == nil && len(list.Requests) == 0 {
		err = s.deferredRule(r.Context(), q.Rule)
	}
	return list, err
}

// deferredRule returns an error if the rule does not exist, unless requests of a former rule of
// that name are kept.
func (s *server) deferredRule(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	unknown := s.checkRule(name)
	if unknown == nil {
		return nil
	}
	kept, err := s.Deferred.List(ctx, DeferredQuestion{Rule: name}, 1)
	if err != nil || len(kept.Requests) > 0 {
		return err
	}
	return unknown
}

func (s *server) canDefer() error {
	if s.Deferred == nil {
		return problemf(http.StatusNotFound, "Nothing is deferred here: there is no gateway with rules and a defer.file.")
	}
	return nil
}

func (q *DeferredQuestion) check() error {
	switch q.State {
	case "", "waiting", "trying", "done", "dead":
		return nil
	}
	return problemf(http.StatusBadRequest, "state has to be waiting, trying, done or dead, and is %q.", q.State)
}

// changeDeferred reads a change, and does it.
func (s *server) changeDeferred(r *http.Request, action string, do func(*DeferredChange) (int, error)) (any, operation, error) {
	var q DeferredChange
	d := operation{action: action}
	if err := decode(r, &q); err != nil {
		return nil, d, err
	}
	d.reason, d.what = q.Reason, []any{"id", q.ID, "rule", q.Rule, "state", q.State}
	if err := checkReason(q.Reason); err != nil {
		return nil, d, err
	}
	if err := s.canDefer(); err != nil {
		return nil, d, err
	}
	if err := q.check(); err != nil {
		return nil, d, err
	}
	n, err := do(&q)
	if err == nil && n == 0 {
		err = s.deferredRule(r.Context(), q.Rule)
	}
	d.what = append(d.what, "changed", n)
	return DeferredChanged{n}, d, err
}

// retryDeferred makes requests due now.
func (s *server) retryDeferred(r *http.Request) (any, operation, error) {
	return s.changeDeferred(r, "deferred retry", func(q *DeferredChange) (int, error) {
		if q.ID == "" && q.Rule == "" {
			return 0, problemf(http.StatusBadRequest, "This does not say which: name an id or a rule.")
		}
		return s.Deferred.Retry(r.Context(), q.DeferredQuestion)
	})
}

// dropDeferred drops requests.
func (s *server) dropDeferred(r *http.Request) (any, operation, error) {
	return s.changeDeferred(r, "deferred drop", func(q *DeferredChange) (int, error) {
		if q.ID == "" && q.Rule == "" {
			return 0, problemf(http.StatusBadRequest, "This does not say which: name an id or a rule.")
		}
		if strings.TrimSpace(q.Reason) == "" {
			return 0, problemf(http.StatusBadRequest, "There is no reason; say in reason why, for those who sent the requests and for whoever looks at this later.")
		}
		return s.Deferred.Drop(r.Context(), q.DeferredQuestion, q.Reason)
	})
}

// drainDeferred stops keeping new requests, or resumes it.
func (s *server) drainDeferred(r *http.Request) (any, operation, error) {
	return s.changeDeferred(r, "deferred drain", func(q *DeferredChange) (int, error) {
		if q.DeferredQuestion != (DeferredQuestion{}) {
			return 0, problemf(http.StatusBadRequest, "A drain is about all requests: leave out id, rule and state.")
		}
		return 0, s.Deferred.Drain(!q.Off)
	})
}
