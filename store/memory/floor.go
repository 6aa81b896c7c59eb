package memory

import (
	"fmt"

	"tidegate.dev/tidegate"
)

// maxFloors is how many floors of a limit are kept ready. Who asks with many others gets
// slower, not larger.
const maxFloors = 16

// bindCheck is bind for a check, which may have a floor.
func (s *Store) bindCheck(c *tidegate.Check) (*bound, error) {
	b, err := s.bind(c.Limit)
	if err != nil || c.Floor == 0 {
		return b, err
	}
	if c.Floor < 0 {
		return nil, fmt.Errorf("memory: Take(%s): floor is %d; want 0 or more", c.Limit, c.Floor)
	}
	return b.above(c.Floor), nil
}

// above is b for those who have to leave floor events.
func (b *bound) above(floor int64) *bound {
	if floor = min(floor, b.limit.Capacity()); floor == 0 {
		return b
	}
	old := b.floors.Load()
	if old != nil {
		for _, made := range *old {
			if made.floor == floor {
				return made
			}
		}
	}
	made := makeBound(b.limit, b.table, b.budget)
	made.floor, made.fits = floor, made.fits-floor
	switch b.kind {
	case buckets:
		made.bucket.Above(floor)
	case counters:
		made.counter.Above(floor)
	case slidings:
		made.sliding.Above(floor)
	case runs:
		made.runs.Above(floor)
	case leases:
		made.lease.Above(floor)
	}
	var all []*bound
	if old != nil && len(*old) < maxFloors {
		all = append(all, *old...)
	}
	all = append(all, made)
	b.floors.CompareAndSwap(old, &all) // else it is made again when it is next asked for
	return made
}
