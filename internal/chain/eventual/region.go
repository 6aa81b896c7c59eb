package eventual

import (
	"slices"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// Region is where an instance is, of several regions that share limits.
type Region struct {
	// Number is how stores know it: see chain.RegionNumber.
	Number int64
	// Of is how many regions there are, and Rank which of them this is, from 0.
	Of, Rank int
	// CutOff reports whether there is a region that has not been heard of for a while.
	CutOff func() bool
}

// number is the region in which a limit is counted; 0 if each region counts by itself.
func (r *Region) number(l *tidegate.Limit) int64 {
	if r == nil || l.Terms == nil || l.Terms.Handling.OnPartition == tidegate.RegionsApart {
		return 0
	}
	return r.Number
}

// cutOff reports whether a limit is held to the share of this region.
func (r *Region) cutOff(l *tidegate.Limit) bool {
	return r != nil && l.Terms != nil && l.Terms.Handling.OnPartition == tidegate.PartitionShare && r.CutOff()
}

// share is what this region has of a limit in a window, by its start. The sum over all
// regions is the limit; what cannot be divided goes to the regions in turn, window by window.
func (r *Region) share(l *tidegate.Limit, start int64) int64 {
	turn := l.Period.Microseconds()
	if l.Algorithm == tidegate.Quota {
		turn = (24 * time.Hour).Microseconds()
	}
	of := int64(r.Of)
	at := int64(r.Rank) + start/turn%of
	return (at+1)*l.Events/of - at*l.Events/of
}

// reserveLocked takes the shares of other regions from what is left, while this region is cut off and the
// limit says so, in each window anew; and gives them back afterwards.
func (s *Store) reserveLocked(c *counter, us int64) {
	wants := int64(0)
	if s.o.Region.cutOff(c.limit) {
		wants = max(c.windowAtLocked(c.limit, us).start, 1)
	}
	if wants != c.reserved {
		s.recountLocked(c, us)
	}
}

// recountLocked tells the memory store what is known to be used of a counter; while this region is held to
// its share, the unused shares of other regions count as used.
func (s *Store) recountLocked(c *counter, us int64) {
	known := c.knownLocked(us)
	c.reserved = 0
	if s.o.Region.cutOff(c.limit) {
		w := c.windowAtLocked(c.limit, us)
		c.reserved = max(w.start, 1)
		if extra := c.limit.Events - s.o.Region.share(c.limit, w.start) - c.abroadLocked(w, us); extra > 0 {
			known = addTo(known, w.start, extra)
		}
	}
	_ = s.local.Recount(c.name.key, c.limit, known) // of a limit that was asked about before
}

// ofRegionLocked is checks as they are decided: while this region is held to its share of a limit, what a
// request has to leave for others is a share of that.
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
		share := s.o.Region.share(check.Limit, c.windowAtLocked(check.Limit, s.clock.now().UnixMicro()).start)
		asked[i].Floor = int64(float64(check.Floor) * float64(share) / float64(check.Limit.Events))
	}
	return asked
}

// abroadLocked is what other regions are known to have used of a limit. now is the window of us.
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
