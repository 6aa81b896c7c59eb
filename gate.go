package tidegate

import (
	"context"
	"sync"
)

// Matcher says what a request is held to. Match appends to dst and returns it;
// it is called by many goroutines at once, and keeps neither the request nor what
// it appended.
type Matcher interface {
	Match(r *Request, dst []Check) []Check
}

// Gate decides requests: a Matcher says what they are held to, a Store keeps
// the count. Use [Gate.Enter] where the end of a request is known, and
// [Gate.Decide] where it is not.
//
// A check of an access rule, whose algorithm is Deny, refuses the request before the
// store is asked, unless it is advisory; one that [Sheds] sets a RetryAfter. The Gate
// also does what limits say in their [Terms]: it starts a Block after a refusal, decides
// when the store cannot answer, and with Enter adjusts charges at the end of a request.
type Gate struct {
	matcher Matcher
	store   Store
	fail    FailMode
	observe func(r *Request, checks []Check, d Decision)
	checks  sync.Pool // of *[]Check
}

// NewGate returns a Gate that admits when the store cannot answer; see
// [Gate.OnStoreFailure].
func NewGate(m Matcher, s Store) *Gate { return (&Gate{matcher: m, store: s}).ready() }

func (g *Gate) ready() *Gate {
	g.checks.New = func() any {
		checks := make([]Check, 0, 8)
		return &checks
	}
	return g
}

// OnStoreFailure returns a Gate on the same rules and counters that answers by
// mode when the store cannot. Limits whose Terms have a mode are answered for by that: one
// that is enforced and fails closed is enough to refuse. It panics when mode is FailLocal
// and the store is not a [LocalFallback].
func (g *Gate) OnStoreFailure(mode FailMode) *Gate {
	mustFallBack("Gate", g.store, mode)
	return (&Gate{matcher: g.matcher, store: g.store, fail: mode, observe: g.observe}).ready()
}

// Observe returns a Gate on the same rules and counters that calls f with every
// decision, after the observers that this Gate has already. Each check names its rule in
// Limit.Terms, and Over says which advisory ones were over; those of access rules
// always are. f is called by many goroutines at once, before the decision is
// returned, and must keep nothing of the request and the checks, keys included.
func (g *Gate) Observe(f func(r *Request, checks []Check, d Decision)) *Gate {
	if f == nil {
		panic("tidegate: Observe: the function is nil")
	}
	tell := f
	if before := g.observe; before != nil {
		tell = func(r *Request, checks []Check, d Decision) {
			before(r, checks, d)
			f(r, checks, d)
		}
	}
	return (&Gate{matcher: g.matcher, store: g.store, fail: g.fail, observe: tell}).ready()
}

// Decide charges everything r is held to, or nothing. The Decision of a request
// that nothing limits is OK and has no Limit. What could be given back at the end
// stays charged, and a Concurrency slot is held for its lease; use Enter where
// the end is known.
func (g *Gate) Decide(ctx context.Context, r *Request) (d Decision) {
	held := g.checks.Get().(*[]Check)
	checks := g.matcher.Match(r, (*held)[:0])
	g.decide(ctx, r, checks, how{settled: true}, &d)
	g.putChecks(held, checks)
	return d
}

// Enter is Decide for front ends that know when a request ends. They then call End of
// the Visit, which is nil if there is nothing to do at the end.
func (g *Gate) Enter(ctx context.Context, r *Request) (d Decision, v *Visit) {
	held := g.checks.Get().(*[]Check)
	checks := g.matcher.Match(r, (*held)[:0])
	counted := g.decide(ctx, r, checks, how{}, &d)
	if d.OK && d.Err == nil {
		v = newVisit(ctx, g.store, counted, &d)
	}
	g.putChecks(held, checks)
	return d, v
}

func (g *Gate) putChecks(held *[]Check, checks []Check) {
	clear(checks)
	*held = checks[:0]
	g.checks.Put(held)
}
