package eventual

import (
	"cmp"
	"context"
	"slices"
	"time"

	"tidegate.dev/tidegate"
)

// takeOwn decides checks that are all counted here: it charges all of them or none.
func (s *Store) takeOwn(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	all, full := s.findAll(checks)
	if all == nil {
		return full, nil
	}
	now := s.elapsed()
	for i, c := range all {
		c.askedLocked(&checks[i], n)
		c.touched = now
	}
	if wait := s.staleLocked(all); wait != nil {
		unlock(all)
		s.await(ctx, wait)
		if all, full = s.findAll(checks); all == nil {
			return full, nil
		}
	}
	defer unlock(all)
	asked := s.ofRegionLocked(checks, all)
	d, err := s.takeLocked(ctx, asked, all, n)
	for i := range checks {
		checks[i].Over = asked[i].Over
	}
	return d, err
}

// freshLocked reports whether what this instance knows of the others is at most two intervals and two
// round trips old.
func (s *Store) freshLocked(c *counter, now time.Duration) bool {
	return c.told > 0 && now-c.told <= 2*s.o.Interval+2*time.Duration(s.queue.trip.Load())
}

// staleLocked has every counter that is not fresh exchanged at once. It returns channels that are
// closed when these exchanges are over; nil means that there is nothing to wait for.
func (s *Store) staleLocked(all []*counter) (wait []chan struct{}) {
	now := s.elapsed()
	if s.o.Tallies == nil || s.queue.isAway(now, s.o.Interval) {
		return nil
	}
	for _, c := range all {
		if s.freshLocked(c, now) || c.failed > 0 && now-c.failed < failedFor {
			continue
		}
		if c.answered == nil {
			c.answered = make(chan struct{})
		}
		wait = append(wait, c.answered)
		s.enqueueLocked(c, atOnce)
	}
	return wait
}

// failedFor is how long after a failed exchange of a counter no request waits for another one.
const failedFor = time.Second

// await waits until all channels are closed, the deadline has passed or ctx ends.
func (s *Store) await(ctx context.Context, all []chan struct{}) {
	deadline := time.NewTimer(s.o.Deadline)
	defer deadline.Stop()
	for _, answered := range all {
		select {
		case <-answered:
		case <-deadline.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// takeLocked decides checks whose counters are all locked.
func (s *Store) takeLocked(ctx context.Context, checks []tidegate.Check, counters []*counter, n int) (tidegate.Decision, error) {
	now, us := s.elapsed(), s.clock.now().UnixMicro()
	instances, alone := s.o.Instances(), s.o.Tallies == nil
	copies := int64(n)
	var put []tidegate.Check // checks but for the advisory ones that are over their share; nil means all
	for i, c := range counters {
		check := &checks[i]
		check.Over = false
		s.reserveLocked(c, us)
		when := inTime
		if f := c.shareLocked(alone || s.freshLocked(c, now), instances); f < 1 {
			left, refusal, err := s.leftLocked(ctx, c, check, f, us)
			if err != nil {
				return tidegate.Decision{}, err
			}
			unit := max(check.Cost, 1)
			if left.unsent > 0 && 2*left.unsent >= left.share {
				when = soon
			}
			switch {
			case left.room >= unit || left.all < unit: // in the latter case the memory store refuses it, and says why
				if check.Cost > 0 && left.room >= unit {
					copies = min(copies, left.room/unit)
				}
			case check.Advisory:
				check.Over = true
				if put == nil {
					put = slices.Clone(checks[:i])
				}
				s.enqueueLocked(c, when)
				continue
			default:
				s.enqueueLocked(c, when)
				return refusal, nil
			}
		}
		s.enqueueLocked(c, when)
		if put != nil {
			put = append(put, *check)
		}
	}
	return s.chargeLocked(ctx, checks, put, counters, int(copies), us)
}

// chargeLocked takes copies from the memory store, and counts what it grants. put has the checks to
// ask the memory store about; nil means all.
func (s *Store) chargeLocked(ctx context.Context, checks, put []tidegate.Check, counters []*counter, copies int, us int64) (tidegate.Decision, error) {
	ask := checks
	if put != nil {
		ask = put
	}
	rooms, err := s.advisoryRooms(ctx, checks, copies)
	if err != nil {
		return tidegate.Decision{}, err
	}
	d, err := s.local.Take(ctx, ask, copies)
	if err != nil {
		return d, err
	}
	for i, j := 0, 0; put != nil && i < len(checks); i++ {
		if !checks[i].Over {
			checks[i].Over = put[j].Over
			j++
		}
	}
	if !d.OK {
		return d, nil
	}
	for i, c := range counters {
		check, charged := &checks[i], d.Granted
		if check.Over {
			charged = 0
			if rooms != nil {
				charged = min(d.Granted, rooms[i])
			}
		}
		if check.Cost > 0 && charged > 0 {
			c.addLocked(check.Limit, d.Receipt.At, check.Cost*charged)
			if d.Limit == check.Limit && c.unsentLocked(us) >= d.Remaining && s.o.Instances() > 1 {
				s.enqueueLocked(c, soon) // at least half of what was left after the last exchange is used
			}
		}
	}
	return d, nil
}

// advisoryRooms returns, by check, for how many copies each advisory check has room: when several are
// taken and not all fit, those that do are charged though the check is over. It is nil for one copy.
func (s *Store) advisoryRooms(ctx context.Context, checks []tidegate.Check, copies int) (rooms []int64, err error) {
	for i := range checks {
		c := &checks[i]
		if copies < 2 || !c.Advisory || c.Over || c.Cost == 0 {
			continue
		}
		if rooms == nil {
			rooms = make([]int64, len(checks))
		}
		peek := [1]tidegate.Check{{Key: c.Key, Limit: c.Limit, Floor: c.Floor}}
		d, err := s.local.Take(ctx, peek[:], 1)
		if err != nil {
			return nil, err
		}
		rooms[i] = d.Remaining / c.Cost
	}
	return rooms, nil
}

// left says how many events are left of a limit, above the floor of a check.
type left struct {
	all    int64 // to the fleet, as far as this instance knows
	unsent int64 // what this instance has used and the others do not know of
	share  int64 // what this instance may use between two exchanges, unsent included
	room   int64 // what is left of share
}

// leftLocked returns what is left of the limit of a check, of which f is the share of this instance.
// The share is at least one request, if that much is left: otherwise a limit of few events would
// never be used up. The decision is the refusal for a request that is above the share.
func (s *Store) leftLocked(ctx context.Context, c *counter, check *tidegate.Check, f float64, us int64) (left, tidegate.Decision, error) {
	peek := [1]tidegate.Check{{Key: check.Key, Limit: check.Limit, Floor: check.Floor}}
	d, err := s.local.Take(ctx, peek[:], 1)
	if err != nil {
		return left{}, d, err
	}
	unit := max(check.Cost, 1)
	is := left{all: d.Remaining, unsent: c.unsentLocked(us)}
	before := is.all + is.unsent
	is.share = max(int64(f*float64(before)), min(before, unit))
	is.room = is.share - is.unsent
	d.OK, d.Granted, d.Wait, d.Limit = false, 0, 0, check.Limit
	d.Remaining = max(0, min(is.room, unit-1))
	d.RetryAfter = s.untilExchange()
	return is, d, nil
}

// untilExchange estimates how long it is until the next exchange is answered, and this instance gets
// another share.
func (s *Store) untilExchange() time.Duration {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	return max(s.queue.whole+s.o.Interval-s.elapsed(), time.Millisecond) + time.Duration(s.queue.trip.Load())
}

// findAll returns the counters of checks, one for each, locked. A counter of several checks is locked
// once. If there is no room for a counter, all is nil and full is the answer to the request.
func (s *Store) findAll(checks []tidegate.Check) (all []*counter, full tidegate.Decision) {
	for {
		all = make([]*counter, len(checks))
		for i := range checks {
			c, full := s.table.find(s, &checks[i], all[:i])
			if c == nil {
				return nil, full
			}
			all[i] = c
		}
		lock(all)
		gone := false
		for i, c := range all {
			gone = gone || c.gone
			c.limit = checks[i].Limit
		}
		if !gone {
			return all, tidegate.Decision{}
		}
		unlock(all)
	}
}

// find is findAll for one check.
func (s *Store) find(check *tidegate.Check) (*counter, tidegate.Decision) {
	for {
		c, full := s.table.find(s, check, nil)
		if c == nil {
			return nil, full
		}
		c.mu.Lock()
		if !c.gone {
			c.limit = check.Limit
			return c, full
		}
		c.mu.Unlock()
	}
}

func lock(all []*counter) {
	for _, c := range inOrder(all) {
		c.mu.Lock()
	}
}

func unlock(all []*counter) {
	for _, c := range inOrder(all) {
		c.mu.Unlock()
	}
}

// inOrder returns each counter once, in the order in which they are locked.
func inOrder(all []*counter) []*counter {
	if len(all) == 1 {
		return all
	}
	once := slices.Clone(all)
	slices.SortFunc(once, func(a, b *counter) int { return cmp.Compare(a.order, b.order) })
	return slices.Compact(once)
}
