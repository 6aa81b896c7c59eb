// Package lease takes events ahead for the limits that are [tidegate.Leased]. It is a
// [chain.Backend] around that of package node: for hot keys it takes a portion of events from
// the shared store, and decides from that without asking. Portions are taken in the background,
// as large as the demand, and live for a tenth of a second at most; what is not used by then
// goes back to a window, and is lost to a bucket.
//
// A request that no portion answers is decided by the layer below, as if its limits were
// strict. That is every request for a key that is not hot and, while the store does not answer,
// for any key. No request ever waits for a portion.
//
// The limit is never exceeded, because the store knows of leases: see [chain.Ask].
//
// Start with [New].
package lease

import (
	"context"
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
)

// Lender takes events ahead, as [tidegate.dev/tidegate/internal/chain/node.Node.TakeAhead] does.
type Lender interface {
	TakeAhead(ctx context.Context, checks []tidegate.Check, copies int, life time.Duration) (granted, rest tidegate.Decision, err error)
}

// Options of a Store.
type Options struct {
	// Instances returns how many instances share the limits, this one included; nil means one.
	Instances func() int
}

// Store is a [chain.Backend] that decides from portions. Use [New].
type Store struct {
	chain.Backend
	lender    Lender
	instances func() int
	start     time.Time // all times count from here, by the monotonic clock
	seed      maphash.Seed
	heat      heat
	shards    [shards]shard
	lastLease atomic.Uint32
	closed    atomic.Bool
	calls     sync.WaitGroup // calls under way; added to under the mu of a shard
}

// New returns a Store around inner. Portions are taken from lender, which asks the same
// counters.
func New(inner chain.Backend, lender Lender, o Options) *Store {
	if o.Instances == nil {
		o.Instances = func() int { return 1 }
	}
	s := &Store{Backend: inner, lender: lender, instances: o.Instances, start: time.Now(), seed: maphash.MakeSeed()}
	for i := range s.shards {
		s.shards[i].supplies = make(map[uint64]*supply)
	}
	return s
}

// Close stops taking portions, and gives back to windows what was not used. From then on the
// layer below decides all requests.
func (s *Store) Close() {
	s.closed.Store(true)
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		for hash, sup := range sh.supplies {
			sup.expire(math.MaxInt64)
			s.settleLocked(sh, sup)
			delete(sh.supplies, hash)
		}
		sh.mu.Unlock()
	}
	s.calls.Wait()
}

// now returns the time since start.
func (s *Store) now() time.Duration { return time.Since(s.start) }

// Take implements tidegate.Store.
func (s *Store) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	if n != 1 || !anyLeased(checks) || s.closed.Load() {
		return s.Backend.Take(ctx, checks, n)
	}
	if len(checks) == 1 { // the common case, which allocates nothing
		g := group{checks: checks}
		if d, how := s.takeGroup(&g); how != unknown {
			return d, nil
		}
		d, err := s.Backend.Take(ctx, checks, n)
		s.askFor(&g)
		return d, err
	}
	return s.takeGroups(ctx, checks)
}

// takeGroups decides a vector of several checks: first from portions, then by asking the layer
// below about the others. What was taken from portions is put back if that refuses.
func (s *Store) takeGroups(ctx context.Context, checks []tidegate.Check) (tidegate.Decision, error) {
	groups, others := divide(checks)
	defer func() { // after the layer below has answered
		for i := range groups {
			s.askFor(&groups[i])
		}
	}()
	var told tidegate.Decision
	taken := groups[:0:0]
	for i := range groups {
		g := &groups[i]
		d, how := s.takeGroup(g)
		switch how {
		case refused:
			s.putBackAll(ctx, taken)
			return d, nil
		case used:
			g.lease, g.at = d.Receipt.Lease, d.Receipt.At
			taken = append(taken, *g)
			if told.Limit == nil || d.Outranks(&told) {
				told = d
			}
		default:
			others = append(others, g.from...)
		}
	}
	if len(others) == 0 {
		return told, nil
	}
	if len(taken) == 0 {
		return s.Backend.Take(ctx, checks, 1)
	}
	rest := pick(checks, others)
	d, err := s.Backend.Take(ctx, rest, 1)
	for i, at := range others {
		checks[at].Over = rest[i].Over
	}
	if err != nil || !d.OK {
		s.putBackAll(ctx, taken)
		return d, err
	}
	d.Receipt.Lease = told.Receipt.Lease
	if told.Outranks(&d) {
		d.Limit, d.Remaining, d.ResetAfter = told.Limit, told.Remaining, told.ResetAfter
	}
	return d, nil
}

// putBackAll puts back what was taken from portions for a request that another limit refuses. If
// a portion is over by now, windows get their events back from the store.
func (s *Store) putBackAll(ctx context.Context, taken []group) {
	for i := range taken {
		g := &taken[i]
		if s.putBack(g, g.lease) {
			continue
		}
		if back := unused(g.checks); len(back) > 0 {
			_ = s.Backend.Adjust(context.WithoutCancel(ctx), tidegate.Receipt{At: g.at}, back) // if it fails, the events are lost with their window
		}
	}
}

// TakeBatch implements chain.Backend, one by one.
func (s *Store) TakeBatch(ctx context.Context, asks []chain.Ask) error {
	return chain.TakeEach(ctx, s, asks)
}
