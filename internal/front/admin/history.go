package admin

import (
	"context"
	"errors"
	"net/http"
	"time"
	"unicode/utf8"

	"tidegate.dev/tidegate/rules/source"
)

// History keeps the rule sets that are or were in force.
type History interface {
	// History returns those that are kept, the newest first; At is when one came into force,
	// not when it was published. With an error, it may lack some.
	History(context.Context) ([]source.Edition, error)
	// Get returns the set whose hash begins with hash, which has at least six digits. The error is
	// [source.ErrNoRevision] if there is none.
	Get(ctx context.Context, hash string) (*source.Bundle, error)
}

// PastRules are the rule sets that are or were in force, the newest first.
type PastRules struct {
	Sets []PastSet `json:"sets"`
	// Incomplete says why some may be missing.
	Incomplete string `json:"incomplete,omitempty"`
}

// PastSet is a rule set that is or was in force.
type PastSet struct {
	Hash     string    `json:"hash"`
	Revision string    `json:"revision,omitempty"` // what its source calls it
	Author   string    `json:"author,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	Since    time.Time `json:"since"`
	InForce  bool      `json:"in_force,omitempty"` // on the instance that answers
}

// PastFiles is a PastSet with its files.
type PastFiles struct {
	PastSet
	Main   string            `json:"main,omitempty"` // see [source.Bundle]: a rule file, or a folder with a slash at its end
	Over   []string          `json:"over,omitempty"` // likewise, of each further layer
	Files  map[string]string `json:"files"`
	Binary map[string][]byte `json:"binary,omitempty"` // those that are not text
}

// rulesHistory lists which rules were in force.
func (s *server) rulesHistory(r *http.Request) (any, error) {
	if s.History == nil {
		return nil, problemf(http.StatusNotFound, "There are no rules here, and no history of them.")
	}
	all, err := s.History.History(r.Context())
	if err != nil && len(all) == 0 {
		return nil, problemf(http.StatusServiceUnavailable, "The history cannot be read: %v.", err)
	}
	past := PastRules{Sets: []PastSet{}}
	for _, e := range all {
		past.Sets = append(past.Sets, s.pastSet(e))
	}
	if err != nil {
		past.Incomplete = err.Error()
	}
	return past, nil
}

func (s *server) pastSet(e source.Edition) PastSet {
	running := s.Rules != nil && s.Rules.Status().Hash == e.Hash
	return PastSet{e.Hash, e.Revision, e.Author, e.Reason, e.At.UTC(), running}
}

// filesOfHistory returns the files of one set.
func (s *server) filesOfHistory(r *http.Request) (any, error) {
	if s.History == nil {
		return nil, problemf(http.StatusNotFound, "There are no rules here, and no history of them.")
	}
	v := r.URL.Query()
	if err := known(v, "hash"); err != nil {
		return nil, err
	}
	hash := v.Get("hash")
	b, err := s.History.Get(r.Context(), hash)
	switch {
	case errors.Is(err, source.ErrNoRevision):
		return nil, problemf(http.StatusNotFound, "There is no set with the hash %q in the history; name one of /rules/history, or at least how it begins, with 6 digits.", hash)
	case err != nil:
		return nil, problemf(http.StatusServiceUnavailable, "The set cannot be read: %v.", err)
	}
	past := PastFiles{PastSet: s.pastSet(b.Edition), Main: b.Main, Over: b.Over, Files: make(map[string]string)}
	for name, text := range b.Files {
		if utf8.Valid(text) {
			past.Files[name] = string(text)
			continue
		}
		if past.Binary == nil {
			past.Binary = make(map[string][]byte)
		}
		past.Binary[name] = text
	}
	return past, nil
}
