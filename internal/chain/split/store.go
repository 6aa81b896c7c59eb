// Package split is the layer for limits whose terms say [tidegate.Split] and whose algorithm it
// suits: every instance of a fleet has its share of the limit and counts by itself. The store below
// is never asked about them, and decides all other limits.
//
//	checks ─┬─ split: members → question → own memory store
//	        └─ others, if that admits: the Backend below
//
// No share is stored. Method ask computes it for each check, from the members, their last changes
// and the time, and what to ask the own store. This package does not count instances:
// Options.Members does.
//
// Start with [New].
package split

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/share"
	"tidegate.dev/tidegate/store/memory"
)

// DefaultLocalBytes bounds the memory store of a Store whose Options do not.
const DefaultLocalBytes = 64 << 20

// Options of a Store.
type Options struct {
	// Members returns how many instances share the limits, this one included, and the rank
	// of this one among them, from 0 on; a rank below 0 means that it is not known. It is
	// asked at every decision. nil means that this instance is alone.
	Members func() (instances, rank int)
	// Local keeps the counters; nil means that New makes a store of LocalBytes.
	Local *memory.Store
	// Whole: Local is also the store below, so all checks of a vector are put to it at once.
	Whole bool
	// LocalBytes bounds the store that New makes; 0 means DefaultLocalBytes.
	LocalBytes int64
	// Now replaces the clock, for tests; Local has to have the same.
	Now func() time.Time
}

// Store is a [chain.Backend] around another. Use [New]. Its methods may be called from any
// number of goroutines, and it has none of its own.
type Store struct {
	chain.Backend
	o         Options
	local     *memory.Store
	start     time.Time
	offset    uint64 // random: used in place of an unknown rank
	receipts  share.Receipts
	history   history
	seeding   sync.Mutex        // serializes seed
	resets    map[counter]int64 // under seeding: when counters were last reset, by the steady clock
	sizes     share.Sizes
	estimates chain.Estimates[estimate]
	parts     sync.Pool // of *part
}

var _ chain.Backend = (*Store)(nil)

// New returns a Store around inner.
func New(inner chain.Backend, o Options) *Store {
	if o.Members == nil {
		o.Members = func() (int, int) { return 1, 0 }
	}
	if o.LocalBytes <= 0 {
		o.LocalBytes = DefaultLocalBytes
	}
	s := &Store{
		Backend: inner, o: o, local: o.Local, start: time.Now(),
		offset:   rand.Uint64(),
		receipts: share.Receipts{Mark: mark, Origin: tidegate.OriginSplit, Instance: tidegate.NewHandle()[0] | 1},
	}
	if s.local == nil {
		s.local = memory.Open(memory.Config{MaxBytes: o.LocalBytes, Now: o.Now})
	}
	s.parts.New = func() any { return new(part) }
	s.members(s.now())
	return s
}

// Is reports whether a limit is counted in shares: its terms say so, and its algorithm allows it.
func Is(l *tidegate.Limit) bool {
	return l != nil && l.Terms != nil && l.Terms.Handling.Consistency == tidegate.Split && tidegate.Split.Suits(l.Algorithm)
}

// now returns the time by the steady clock, which is close to that of the memory store, and by the
// wall clock.
func (s *Store) now() moment {
	if s.o.Now != nil {
		t := algo.Instant(s.o.Now())
		return moment{t, t}
	}
	t := time.Now()
	return moment{steady: algo.Instant(s.start.Add(t.Sub(s.start)).Round(0)), wall: algo.Instant(t.Round(0))}
}

func (s *Store) members(now moment) members {
	n, rank := s.o.Members()
	return s.history.note(n, rank, s.offset, now.steady)
}

// Look records how many instances there are. Call it after changes, so that their time is known
// even if no request comes.
func (s *Store) Look() { s.members(s.now()) }

// Take implements tidegate.Store. It asks the shares first: what they grant can always be given
// back if the store below refuses.
func (s *Store) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	if d, ok, err := s.takeQuick(ctx, checks, n); ok {
		return d, err
	}
	p := s.divide(checks)
	if p == nil {
		return s.Backend.Take(ctx, checks, n)
	}
	defer s.putPart(p)
	return s.take(ctx, p, checks, n, s.Backend.Take)
}

// take decides checks, which p divides. If the shares admit, rest decides those of the store below,
// and what it does not grant is given back to the shares.
func (s *Store) take(ctx context.Context, p *part, checks []tidegate.Check, n int, rest func(context.Context, []tidegate.Check, int) (tidegate.Decision, error)) (tidegate.Decision, error) {
	if n < 1 || !share.Valid(checks) {
		return s.local.Take(ctx, checks, n) // says what is wrong
	}
	own, err := s.takeShare(ctx, p, n)
	p.copyOver(checks)
	if err != nil {
		return tidegate.Decision{}, err
	}
	s.receipts.Sign(&own.Receipt)
	switch {
	case len(p.rest) == 0:
		return own, nil
	case !own.OK:
		share.CountRejected(ctx, s.Backend, p.rest, n)
		return own, nil
	}
	d, err := rest(ctx, p.rest, int(own.Granted))
	p.copyOver(checks)
	kept := d.Granted
	if err != nil || !d.OK {
		kept = 0
	}
	if own.Granted > kept {
		s.putBack(ctx, p, own.Receipt, own.Granted-kept)
	}
	if err != nil || !d.OK {
		return d, err
	}
	return s.receipts.Mixed(&d, &own, p.own), nil
}

// MaxBatch implements chain.Backend: shares are taken one by one.
func (s *Store) MaxBatch() int { return 1 }

// TakeBatch implements chain.Backend.
func (s *Store) TakeBatch(ctx context.Context, asks []chain.Ask) error {
	return chain.TakeEach(ctx, s, asks)
}
