package tidegate

import (
	"context"
	"sync"
	"time"
)

// Request is what is asked about: who and what by attribute, and a cost.
type Request struct {
	// Method, Host and Path, where the front end has them.
	Method, Host, Path string
	// RawPath is the path as it was sent, where that is not Path: a slash that
	// was escaped may divide it or not, and rules hold for both readings.
	RawPath string
	// Values gives the other attributes by name, such as "ip" or "header
	// X-Api-Key"; nil has none.
	Values Values
	// Cost in events; 0 means 1.
	Cost int64
}

// Values looks up an attribute of a request.
type Values interface {
	Value(name string) (value string, ok bool)
}

// Value is shorthand for r.Values.Value that survives a nil Values.
func (r *Request) Value(name string) (string, bool) {
	if r.Values == nil {
		return "", false
	}
	return r.Values.Value(name)
}

// Matcher says what a request is held to. Match appends to dst and returns it;
// it is called by many goroutines at once.
type Matcher interface {
	Match(r *Request, dst []Check) []Check
}

// Gate decides requests: a Matcher says what they are held to, a Store keeps
// the count. Start with [Gate.Decide].
type Gate struct {
	matcher Matcher
	store   Store
	fail    FailMode
	checks  sync.Pool // of *[]Check
}

// NewGate returns a Gate that admits when the store cannot answer; see
// [Gate.OnStoreFailure].
func NewGate(m Matcher, s Store) *Gate { return newGate(m, s, FailOpen) }

func newGate(m Matcher, s Store, fail FailMode) *Gate {
	g := &Gate{matcher: m, store: s, fail: fail}
	g.checks.New = func() any {
		checks := make([]Check, 0, 8)
		return &checks
	}
	return g
}

// OnStoreFailure returns a Gate on the same rules and counters that answers by
// mode when the store cannot.
func (g *Gate) OnStoreFailure(mode FailMode) *Gate { return newGate(g.matcher, g.store, mode) }

// Decide charges everything r is held to, or nothing. The Decision of a request
// that nothing limits is OK and has no Limit. A Concurrency slot taken by Decide
// is held for its lease; use Enter to give it back.
func (g *Gate) Decide(ctx context.Context, r *Request) Decision {
	held := g.checks.Get().(*[]Check)
	checks := g.matcher.Match(r, (*held)[:0])
	d := g.decide(ctx, checks)
	g.put(held, checks)
	return d
}

// Enter is Decide for front ends that know when a request ends: slots that it
// took are renewed and held until the reservation is cancelled or ctx ends. The
// reservation is nil when there is nothing to give back.
func (g *Gate) Enter(ctx context.Context, r *Request) (Decision, *Reservation) {
	held := g.checks.Get().(*[]Check)
	checks := g.matcher.Match(r, (*held)[:0])
	d := g.decide(ctx, checks)
	slots := hold(ctx, g.store, checks, d)
	g.put(held, checks)
	return d, slots
}

func (g *Gate) put(held *[]Check, checks []Check) {
	clear(checks)
	*held = checks[:0]
	g.checks.Put(held)
}

func (g *Gate) decide(ctx context.Context, checks []Check) Decision {
	if len(checks) == 0 {
		return Decision{OK: true, Granted: 1}
	}
	d, err := g.store.Take(ctx, checks, 1)
	switch {
	case err == nil:
		return d
	case g.fail == FailClosed:
		return Decision{Err: err, Limit: checks[0].Limit, RetryAfter: time.Second}
	}
	return Decision{Err: err, Limit: checks[0].Limit, OK: true, Granted: 1}
}
