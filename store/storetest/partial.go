package storetest

import (
	"context"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// partialStore is a store that is asked for some parts of the suite only: a test that uses
// another one is skipped at that call.
type partialStore struct {
	tidegate.Store
	t     *testing.T
	asked scope
	clock *clock // nil when the store's clock cannot be set
	seen  *history
}

// history is what a store has been asked before.
type history struct {
	latest time.Time
	limits map[string]*tidegate.Limit // by identity
}

// limitTo returns store as a partialStore, or as it is if everything is asked of it.
func limitTo(t *testing.T, store tidegate.Store, a scope, c *clock) tidegate.Store {
	if a == nil {
		return store
	}
	return &partialStore{store, t, a, c, &history{limits: map[string]*tidegate.Limit{}}}
}

// inSubtest returns the same store for a subtest, which it skips instead.
func inSubtest(t *testing.T, store tidegate.Store) tidegate.Store {
	g, ok := store.(*partialStore)
	if !ok {
		return store
	}
	same := *g
	same.t = t
	return &same
}

func (g *partialStore) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	g.need(partsOf(checks, n)...)
	g.watch(checks)
	return g.Store.Take(ctx, checks, n)
}

func (g *partialStore) Adjust(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	g.need("returns")
	g.watch(checks)
	return g.Store.Adjust(ctx, r, checks)
}

// need skips the test if one of the parts is not asked.
func (g *partialStore) need(parts ...string) {
	g.t.Helper()
	for _, part := range parts {
		if !g.asked.has(part) {
			g.t.Skipf("from here on it uses %s, which is not asked of the store", part)
		}
	}
}

// watch notices a clock that was set back, and limits that differ from before.
func (g *partialStore) watch(checks []tidegate.Check) {
	g.t.Helper()
	if g.clock != nil {
		now := g.clock.now()
		if now.Before(g.seen.latest) {
			g.need("clock_steps")
		}
		g.seen.latest = now
	}
	for _, c := range checks {
		before := g.seen.limits[c.Limit.Identity()]
		if before != nil && (before.Events != c.Limit.Events || before.Burst != c.Limit.Burst || before.Period != c.Limit.Period || before.Parts != c.Limit.Parts || before.Algorithm != c.Limit.Algorithm) {
			g.need("changes")
		}
		g.seen.limits[c.Limit.Identity()] = c.Limit
	}
}

// whole returns the store with all its abilities, for a test that uses these parts.
func (s *subject) whole(parts ...string) tidegate.Store {
	s.Helper()
	g, ok := s.store.(*partialStore)
	if !ok {
		return s.store
	}
	g.need(parts...)
	return g.Store
}

// ability returns store as an A, if it can be one and that part is asked.
func ability[A any](store tidegate.Store, part string) (able A, ok bool) {
	if g, partial := store.(*partialStore); partial {
		if !g.asked.has(part) {
			return able, false
		}
		store = g.Store
	}
	able, ok = store.(A)
	return able, ok
}

func renewer(s tidegate.Store) (tidegate.Renewer, bool) {
	return ability[tidegate.Renewer](s, "renewals")
}

func reserver(s tidegate.Store) (tidegate.Reserver, bool) {
	return ability[tidegate.Reserver](s, "reservations")
}

func resetter(s tidegate.Store) (tidegate.Resetter, bool) {
	return ability[tidegate.Resetter](s, "resets")
}
