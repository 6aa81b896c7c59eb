// Package eventual is the layer for limits whose terms say [tidegate.Eventual]: every instance of a
// fleet decides by itself, from its own counters and what it last heard of the others'. In the
// background, instances exchange their counts through a store that all share. All other limits are
// left to the Backend below.
//
//	checks ─┬─ eventual: share of what is left → own memory store
//	        └─ others, if that admits: the Backend below
//	counters ── every interval: own counts → chain.Tallies → those of all
//
// The memory store has, for each key, what all instances are known to have counted. Until the next
// exchange, an instance may take its share of what is left; see counter. The first request for a
// key in a while waits for an exchange, because this instance does not know what the others have
// counted. Counts are cumulative for each instance and window, so an exchange may be lost or
// repeated.
//
// Start with [New].
package eventual

import (
	"context"
	"hash/maphash"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/share"
	"tidegate.dev/tidegate/store/memory"
)

// Defaults of Options.
const (
	DefaultInterval = 100 * time.Millisecond
	DefaultDeadline = 25 * time.Millisecond
	DefaultMaxKeys  = 1 << 16
)

// localBytes bounds the memory store; it is enough for DefaultMaxKeys.
const localBytes = 64 << 20

// Options of a Store. Every field has a default.
type Options struct {
	// Tallies is where counts are exchanged; nil means that this instance is alone.
	Tallies chain.Tallies
	// Instances is how many share the limits, this one included; nil means one.
	Instances func() int
	// Region is the region of this instance; nil means that the fleet has a single region.
	Region *Region
	// Interval is how often counts are exchanged; 0 means DefaultInterval.
	Interval time.Duration
	// Deadline bounds how long a request waits for an exchange, if this instance does not know
	// what the others have counted; 0 means DefaultDeadline.
	Deadline time.Duration
	// MaxKeys bounds the counters that are held; 0 means DefaultMaxKeys. A counter of a limit
	// with many sub-windows counts as several.
	MaxKeys int
	// Now replaces the clock of this instance, for tests.
	Now func() time.Time
}

// Store is a [chain.Backend] around another. Use [New]. Its methods may be called from any number
// of goroutines.
type Store struct {
	chain.Backend
	o         Options
	local     *memory.Store
	clock     clock
	start     time.Time
	receipts  share.Receipts
	estimates chain.Estimates[estimate]
	table     table
	queue     queue
	handed    atomic.Pointer[[]handed]
}

var _ chain.Backend = (*Store)(nil)

// New returns a Store around inner. Close it at the end.
func New(inner chain.Backend, o Options) *Store {
	if o.Instances == nil {
		o.Instances = func() int { return 1 }
	}
	if o.Interval <= 0 {
		o.Interval = DefaultInterval
	}
	if o.Deadline <= 0 {
		o.Deadline = DefaultDeadline
	}
	if o.MaxKeys <= 0 {
		o.MaxKeys = DefaultMaxKeys
	}
	s := &Store{
		Backend: inner, o: o, start: time.Now(),
		receipts: share.Receipts{Mark: "eventual\x00", Origin: tidegate.OriginEventual, Instance: tidegate.NewHandle()[0] | 1},
	}
	s.clock.start, s.clock.raw = s.start, o.Now
	s.local = memory.Open(memory.Config{MaxBytes: localBytes, Now: s.clock.now})
	s.table.open(maphash.MakeSeed(), o.MaxKeys)
	s.queue.last, s.queue.whole = -o.Interval, -o.Interval
	s.queue.idle.L = &s.queue.mu
	return s
}

// Is reports whether a limit is counted here.
func Is(l *tidegate.Limit) bool {
	return l != nil && l.Terms != nil && l.Terms.Handling.Consistency == tidegate.Eventual && tidegate.Eventual.Suits(l.Algorithm)
}

// elapsed returns the time since the Store was made, by the monotonic clock. It is never 0.
func (s *Store) elapsed() time.Duration { return time.Since(s.start) + 1 }

// Take implements tidegate.Store. It asks this layer's counters first: what they grant can always be
// given back if the store below refuses.
func (s *Store) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	p, some := divide(checks)
	if !some {
		return s.Backend.Take(ctx, checks, n)
	}
	return s.take(ctx, &p, checks, n, s.Backend.Take)
}

// take decides checks, which p divides; rest is called for those of the store below.
func (s *Store) take(ctx context.Context, p *part, checks []tidegate.Check, n int, rest func(context.Context, []tidegate.Check, int) (tidegate.Decision, error)) (tidegate.Decision, error) {
	if n < 1 || !share.Valid(checks) {
		return s.local.Take(ctx, checks, n) // says what is wrong
	}
	own, err := s.takeOwn(ctx, p.own, n)
	p.copyOver(checks)
	if err != nil {
		return tidegate.Decision{}, err
	}
	s.receipts.Sign(&own.Receipt)
	if len(p.rest) == 0 {
		return own, nil
	}
	if !own.OK {
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
		s.putBack(ctx, p.own, own.Receipt, own.Granted-kept)
	}
	if err != nil || !d.OK {
		return d, err
	}
	return s.receipts.Mixed(&d, &own, p.own), nil
}

// putBack gives back so many copies of checks, which were granted and are not used.
func (s *Store) putBack(ctx context.Context, checks []tidegate.Check, taken tidegate.Receipt, copies int64) {
	back := make([]tidegate.Check, 0, len(checks))
	for _, c := range checks {
		if c.Cost *= -copies; c.Cost < 0 && !c.Over {
			back = append(back, c)
		}
	}
	_ = s.adjustOwn(context.WithoutCancel(ctx), taken, back) // it has just answered
}

// MaxBatch implements chain.Backend: this layer decides requests one by one.
func (s *Store) MaxBatch() int { return 1 }

// TakeBatch implements chain.Backend.
func (s *Store) TakeBatch(ctx context.Context, asks []chain.Ask) error {
	return chain.TakeEach(ctx, s, asks)
}
