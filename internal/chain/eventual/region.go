package eventual

import (
	"slices"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// Region describes the region of an instance, one of several that share limits.
type Region struct {
	// Number is how stores know it: see chain.RegionNumber.
	Number int64
	// Of is how many regions there are, and Rank which of them this is, from 0.
	Of, Rank int
	// CutOff reports whether there is a region that has not been heard of for a while.
	CutOff func() bool
}

// number returns the number of this region for a limit that several regions share; 0 if each region
// counts by itself.
func (r *Region) number(l *tidegate.Limit) int64 {
	if r == nil || l.Terms == nil || l.Terms.Handling.OnPartition == tidegate.RegionsApart {
		return 0
	}
	return r.Number
}

// cutOff reports whether a limit is now held to the share of this region.
func (r *Region) cutOff(l *tidegate.Limit) bool {
	return r != nil && l.Terms != nil && l.Terms.Handling.OnPartition == tidegate.PartitionShare && r.CutOff()
}

// share returns how many of some events of a limit this region has in the window that begins at start.
// The shares of all regions add up to these events; which regions get the remainder changes from
// period to period.
func (r *Region) share(events int64, l *tidegate.Limit, start int64) int64 {
	turn := l.Period.Microseconds()
	if l.Algorithm == tidegate.Quota {
		turn = (24 * time.Hour).Microseconds()
	}
	of := int64(r.Of)
	at := int64(r.Rank) + start/turn%of
	return (at+1)*events/of - at*events/of
}

// reserveLocked holds back the shares of other regions, anew in each window, while this region is cut
// off and the limit says so; afterwards it lets go of them.
func (s *Store) reserveLocked(c *counter, us int64) {
	wants := int64(0)
	if s.o.Region.cutOff(c.limit) {
		wants = max(c.windowAtLocked(c.limit, us).start, 1)
	}
	if wants != c.reserved {
		s.recountLocked(c, us)
	}
}

// recountLocked sets the memory store to what is known to be used of a counter. While this region is held
// to its share, the unused shares of other regions count as used.
func (s *Store) recountLocked(c *counter, us int64) {
	known := c.knownLocked(us)
	c.reserved = 0
	if s.o.Region.cutOff(c.limit) {
		w := c.windowAtLocked(c.limit, us)
		c.reserved = max(w.start, 1)
		if extra := c.limit.Events - s.o.Region.share(c.limit.Events, c.limit, w.start) - c.abroadLocked(w, us); extra > 0 {
			known = addTo(known, w.start, extra)
		}
	}
	_ = s.local.Recount(c.name.key, c.limit, known) // of a limit that was asked about before
}

// ofRegionLocked returns checks with other floors where this region is held to its share of a limit: above
// the floor is its share of what is above the floor of the whole limit.
func (s *Store) ofRegionLocked(checks []tidegate.Check, counters []*counter) []tidegate.Check {
	asked := checks
	for i, c := range counters {
		check := &checks[i]
		if check.Floor == 0 || !s.o.Region.cutOff(check.Limit) {
			continue
		}
		if &asked[0] == &checks[0] {
			asked = slices.Clone(checks) // they are the caller's
		}
		start, events := c.windowAtLocked(check.Limit, s.clock.now().UnixMicro()).start, check.Limit.Events
		own, above := s.o.Region.share(events, check.Limit, start), s.o.Region.share(max(events-check.Floor, 0), check.Limit, start)
		asked[i].Floor = max(own-above, 0)
	}
	return asked
}

// abroadLocked returns what other regions are known to have used of a limit at us, in µs. now is the
// window of us.
func (c *counter) abroadLocked(now window, us int64) (sum int64) {
	for _, one := range c.counts {
		switch left := one.over - us; {
		case left <= 0 || one.start > us:
		case now.over > now.end && left < now.end-now.start: // it is sliding out
			sum += int64(float64(one.abroad) * float64(left) / float64(now.end-now.start))
		default:
			sum += one.abroad
		}
	}
	return sum
}

// addTo adds events to the count of the window with that start.
func addTo(counts []memory.Count, start, events int64) []memory.Count {
	at := time.UnixMicro(start)
	for i := range counts {
		if counts[i].At.Equal(at) {
			counts[i].Events += events
			return counts
		}
	}
	return append(counts, memory.Count{At: at, Events: events})
}
