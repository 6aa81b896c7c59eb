// Package cluster is what a node does before it asks the store that a fleet shares. It
// is a Store around another, and promises what that one does: never over the limit.
//
// What was refused is remembered, for at most a second and never longer than the store
// said, and refused again without asking; see denials. Requests for the same, while one
// of them is asked, wait and are then asked for together; see flight. Rules can switch
// either off, by [tidegate.Terms].
//
// Every method returns when the caller's context ends, whatever the inner store does:
// that is called on goroutines of this package, under a deadline, and so many at a time.
// What becomes of a request without an answer is not decided here; see internal/guard.
//
// Start with [New].
package cluster

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/spread"
)

// Defaults of Options.
const (
	DefaultDeadline    = 25 * time.Millisecond
	DefaultInFlight    = 4096
	DefaultDenyEntries = 1 << 16
)

// ErrBusy is returned when too many calls of the inner store have not come back. Nothing
// was charged.
var ErrBusy error = busy{}

type busy struct{}

func (busy) Error() string { return "too many calls wait for the store" }

// Busy tells layers above what it is without their knowing this package.
func (busy) Busy() bool { return true }

// Options of a Store. Every field has a default.
type Options struct {
	// Deadline is how long the inner store is given for a call, up to an eighth
	// less, and how long a caller without a deadline waits; 0 means DefaultDeadline.
	Deadline time.Duration
	// InFlight bounds the calls that the inner store has not returned from, those
	// that nobody waits for included; 0 means DefaultInFlight.
	InFlight int
	// DenyEntries is how many refusals are remembered, about 80 bytes each; 0 means
	// DefaultDenyEntries, less than that none.
	DenyEntries int
}

func (o *Options) complete() {
	if o.Deadline <= 0 {
		o.Deadline = DefaultDeadline
	}
	if o.InFlight <= 0 {
		o.InFlight = DefaultInFlight
	}
	if o.DenyEntries == 0 {
		o.DenyEntries = DefaultDenyEntries
	}
}

// Store is a [tidegate.Store] around another, also a Renewer, Reserver and Resetter as
// far as that is one. Its methods may be called from any number of goroutines.
type Store struct {
	lanes [lanes]lane // first, so that each begins where a cache line does
	inner tidegate.Store
	short shortTaker // the inner store, if it is one
	o     Options
	late  error // what a caller is told that had no deadline

	start   time.Time
	clock   func() time.Duration // since start, or what a test says
	round   atomic.Pointer[round]
	hands   hands
	batches batches
	pilot   func() // s.flyTogether, made once
	deny    denials
	seed    maphash.Seed
	flying  atomic.Int64 // calls that the inner store has not returned from
	count   counts

	ends, lates   atomic.Pointer[watch] // of the last callers' contexts, and of deadline's
	legs, flights sync.Pool             // of *leg, *flight
	tracks        sync.Pool             // of *int
	lastTrack     atomic.Uint32
}

// shortTaker is a Store that also says, when it grants fewer copies than were asked for,
// what the next one is refused with, from the same look at its counters.
type shortTaker interface {
	TakeShort(ctx context.Context, checks []tidegate.Check, n int) (granted, rest tidegate.Decision, err error)
}

var (
	_ tidegate.Store    = (*Store)(nil)
	_ tidegate.Renewer  = (*Store)(nil)
	_ tidegate.Reserver = (*Store)(nil)
	_ tidegate.Resetter = (*Store)(nil)
)

// New returns a Store around inner. Close it at the end.
func New(inner tidegate.Store, o Options) *Store {
	o.complete()
	s := &Store{inner: inner, o: o, start: time.Now(), seed: maphash.MakeSeed()}
	s.short, _ = inner.(shortTaker)
	s.batches.init(inner, o.Deadline)
	s.batches.alarm = time.AfterFunc(time.Hour, s.flyAnyway)
	s.batches.alarm.Stop()
	s.pilot = s.flyTogether
	s.late = fmt.Errorf("the store did not answer within %s: %w", o.Deadline, context.DeadlineExceeded)
	s.clock = func() time.Duration { return time.Since(s.start) }
	s.deny.init(o.DenyEntries)
	for i := range s.lanes {
		s.lanes[i].flights = make(map[uint64]*flight)
	}
	s.tracks.New = func() any { return new(int(s.lastTrack.Add(1) % tracks)) }
	s.legs.New = func() any { return newLeg() }
	s.flights.New = func() any { return newFlight(s) }
	return s
}

// Close ends the goroutines that are idle; those with a call under way end with it. It
// does not close the inner store, and the Store goes on answering.
func (s *Store) Close() error {
	s.hands.close()
	return nil
}

// Forget forgets every refusal: limits were changed, or counters by somebody else.
func (s *Store) Forget() { s.deny.forget() }

// Take implements tidegate.Store.
func (s *Store) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	if err := ctx.Err(); err != nil {
		return tidegate.Decision{}, err
	}
	if n < 1 {
		return tidegate.Decision{}, fmt.Errorf("Take(n=%d): want at least 1", n)
	}
	if !s.Quiet() {
		if d, ok := s.Denied(checks); ok {
			return d, nil
		}
	}
	d, err := s.TakeShared(ctx, checks, n)
	if err != nil {
		return tidegate.Decision{}, err
	}
	return *d, nil
}

// Quiet reports that no refusal is remembered.
func (s *Store) Quiet() bool { return s.deny.none() }

// Denied is the first half of Take: a refusal that is remembered.
func (s *Store) Denied(checks []tidegate.Check) (d tidegate.Decision, ok bool) {
	if waysOf(checks)&remembered == 0 {
		return d, false
	}
	if d, ok = s.denied(checks); ok {
		s.count.denied.Inc()
	}
	return d, ok
}

// TakeShared is the second half: it asks the inner store. The answer is that of others,
// too, and not to be written to.
func (s *Store) TakeShared(ctx context.Context, checks []tidegate.Check, n int) (*tidegate.Decision, error) {
	w := waysOf(checks)
	if n != 1 { // they are together already
		w &^= together
	}
	if s.o.DenyEntries < 0 {
		w &^= remembered
	}
	if done := ctx.Done(); s.watched(done) {
		return s.join(&patience{ctx: ctx, done: done}, checks, n, w)
	}
	return s.joinAlone(ctx, checks, n, w)
}

// counts of what happened.
type counts struct {
	denied              spread.Counter
	calls, shared, busy atomic.Uint64
}

// Stats are counts since the Store was made.
type Stats struct {
	// Asked is how often Take was called.
	Asked uint64
	// Denied of these were refused by what was remembered.
	Denied uint64
	// Calls of the inner store's Take.
	Calls uint64
	// Shared is how many were answered by a call that they shared with others.
	Shared uint64
	// Busy is how many calls were not made because too many had not come back.
	Busy uint64
	// InFlight is how many calls of the inner store have not come back.
	InFlight int64
}

// Stats tells what happened so far.
func (s *Store) Stats() Stats {
	c := &s.count
	denied := c.denied.Load()
	return Stats{
		Asked: s.asked() + denied, Denied: denied, Calls: c.calls.Load(),
		Shared: c.shared.Load(), Busy: c.busy.Load(), InFlight: s.flying.Load(),
	}
}

// asked is how many were not denied.
func (s *Store) asked() (n uint64) {
	for i := range s.lanes {
		at := &s.lanes[i]
		at.mu.Lock()
		n += at.asked
		at.mu.Unlock()
	}
	return n
}
