package lease

import (
	"context"
	"errors"

	"tidegate.dev/tidegate"
)

// Adjust implements tidegate.Store. What came from a portion goes back there while it may
// be used. After that a window gets it back, and a bucket does not: it has refilled
// meanwhile.
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
	// Of a request that the store decided a part of, nobody knows which of the others it did.
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

// storeReceipt is the receipt of the portion that a request was admitted from.
func storeReceipt(r tidegate.Receipt) tidegate.Receipt { return tidegate.Receipt{At: r.At} }

// unused is what is given back to windows.
func unused(checks []tidegate.Check) (back []tidegate.Check) {
	for _, c := range checks {
		if c.Limit.Algorithm != tidegate.TokenBucket {
			c.Cost = -c.Cost
			back = append(back, c)
		}
	}
	return back
}

// putBack returns what a group cost to the portion that it came from, and reports whether
// that can still be used.
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

// Reset implements tidegate.Resetter. What is held of the keys is forgotten: it was taken
// from what is reset.
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

// counts reports whether one of checks is of a counter of s.
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
