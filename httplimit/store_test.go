package httplimit

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// script is a store that gives the decisions it was told to, the last one for
// ever, and remembers what it was asked.
type script struct {
	mu        sync.Mutex
	decisions []tidegate.Decision
	err       error
	keys      []string
	calls     int
}

func (s *script) Take(_ context.Context, checks []tidegate.Check, _ int) (tidegate.Decision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	s.keys = append(s.keys, checks[0].Key)
	if s.err != nil {
		return tidegate.Decision{}, s.err
	}
	if len(s.decisions) == 0 {
		return tidegate.Decision{OK: true, Granted: 1, Limit: checks[0].Limit}, nil
	}
	d := s.decisions[0]
	if len(s.decisions) > 1 {
		s.decisions = s.decisions[1:]
	}
	if d.Limit == nil {
		d.Limit = checks[0].Limit
	}
	return d, nil
}

func (s *script) Adjust(context.Context, tidegate.Receipt, []tidegate.Check) error { return nil }

// slotStore counts the slots in use, whatever their leases.
type slotStore struct {
	mu   sync.Mutex
	used int64
	last int64
}

func (s *slotStore) Take(_ context.Context, checks []tidegate.Check, _ int) (tidegate.Decision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := checks[0].Limit
	if s.used >= l.Events {
		return tidegate.Decision{Limit: l, RetryAfter: l.Period, ResetAfter: l.Period}, nil
	}
	s.used++
	s.last++
	return tidegate.Decision{OK: true, Granted: 1, Limit: l, Remaining: l.Events - s.used, Receipt: tidegate.Receipt{At: s.last}}, nil
}

func (s *slotStore) Adjust(_ context.Context, _ tidegate.Receipt, checks []tidegate.Check) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used += checks[0].Cost
	return nil
}

func (s *slotStore) inUse() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

// waitFor is testdep.Eventually for less than a minute, after which slots of a store come free by themselves.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	if !testdep.Await(20*time.Second, ok) {
		t.Fatalf("waited in vain for: %s", what)
	}
}

var hello = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	_, _ = w.Write([]byte("hello"))
})

func get(h http.Handler, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// adjusted counts adjustments.
type adjusted struct {
	*script
	n int
}

func (s *adjusted) Adjust(context.Context, tidegate.Receipt, []tidegate.Check) error {
	s.n++
	return nil
}
