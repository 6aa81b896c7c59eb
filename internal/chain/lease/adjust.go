package lease

import (
	"context"
	"errors"

	"tidegate.dev/tidegate"
)

// Adjust implements tidegate.Store. What came from a portion goes back there while the portion
// lives. After that it goes back to a window in the store, but not to a bucket, which has
// refilled meanwhile, nor if the store decided a part of the request. Charges, and checks that
// are not leased, go to the store.
func (s *Store) Adjust(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	if r.Lease == 0 && r.Origin != tidegate.OriginLeased {
		return s.Backend.Adjust(ctx, r, checks)
	}
	var (
		ours, windows, theirs []tidegate.Check
		theirReceipt          = r
	)
	for _, c := range checks {
		switch {
		case c.Cost < 0 && isLeased(c.Limit):
			c.Cost = -c.Cost
			ours = append(ours, c)
		default:
			theirs = append(theirs, c)
		}
	}
	groups, others := divide(ours)
	for _, at := range others {
		windows = append(windows, ours[at])
	}
	for i := range groups {
		if !s.putBack(&groups[i], r.Lease) {
			windows = append(windows, groups[i].checks...)
		}
	}
	var err error
	// If the store decided a part of the request, it is not known which of these checks were
	// in that part.
	if back := unused(windows); len(back) > 0 && r.Origin == tidegate.OriginLeased {
		err = s.Backend.Adjust(ctx, storeReceipt(r), back)
	}
	if len(theirs) > 0 {
		if theirReceipt.Lease = 0; r.Origin == tidegate.OriginLeased {
			theirReceipt = storeReceipt(r)
		}
		err = errors.Join(err, s.Backend.Adjust(ctx, theirReceipt, theirs))
	}
	return err
}

// storeReceipt returns the store's receipt for the portion that r was admitted from: it keeps
// only the time.
func storeReceipt(r tidegate.Receipt) tidegate.Receipt { return tidegate.Receipt{At: r.At} }

// unused returns the checks of windows, without those of buckets, with negative costs, to give
// them back.
func unused(checks []tidegate.Check) (back []tidegate.Check) {
	for _, c := range checks {
		if c.Limit.Algorithm != tidegate.TokenBucket {
			c.Cost = -c.Cost
			back = append(back, c)
		}
	}
	return back
}

// putBack returns the cost of a group to the portion with the number lease, and reports whether
// that portion still lives.
func (s *Store) putBack(g *group, lease uint32) bool {
	hash := s.hash(g.checks)
	sh := s.shard(hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sup := sh.supplies[hash]
	if sup == nil || !same(sup.unit, g.checks) {
		return false
	}
	defer s.settleLocked(sh, sup)
	return sup.putBack(lease, g.checks[0].Cost, s.now())
}

// Reset implements tidegate.Resetter. It also drops the portions that were taken from these
// counters.
func (s *Store) Reset(ctx context.Context, checks []tidegate.Check) error {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		for hash, sup := range sh.supplies {
			if sup.counts(checks) {
				sup.held, sup.over, sup.reset = nil, nil, true
				delete(sh.supplies, hash)
			}
		}
		sh.mu.Unlock()
	}
	return s.Backend.Reset(ctx, checks)
}

// counts reports whether one of checks has a counter that s holds portions of.
func (s *supply) counts(checks []tidegate.Check) bool {
	for i := range checks {
		for j := range s.unit {
			if c, u := &checks[i], &s.unit[j]; c.Limit != nil && c.Key == u.Key && c.Limit.Identity() == u.Limit.Identity() {
				return true
			}
		}
	}
	return false
}
