package memory

import (
	"fmt"

	"tidegate.dev/tidegate"
)

// maxFloors is how many floors of a limit are kept compiled. A caller that uses more of
// them gets slower, not larger.
const maxFloors = 16

// compileCheck is compile for a check, which may have a floor.
func (s *Store) compileCheck(c *tidegate.Check) (*compiledLimit, error) {
	lim, err := s.compile(c.Limit)
	if err != nil || c.Floor == 0 {
		return lim, err
	}
	if c.Floor < 0 {
		return nil, fmt.Errorf("memory: Take(%s): floor is %d; want 0 or more", c.Limit, c.Floor)
	}
	return lim.withFloor(c.Floor), nil
}

// withFloor returns lim for requests that have to leave floor events.
func (lim *compiledLimit) withFloor(floor int64) *compiledLimit {
	if floor = min(floor, lim.limit.Capacity()); floor == 0 {
		return lim
	}
	old := lim.floors.Load()
	if old != nil {
		for _, made := range *old {
			if made.floor == floor {
				return made
			}
		}
	}
	made := newCompiledLimit(lim.limit, lim.table, lim.budget)
	made.floor, made.fits, made.plain = floor, made.fits-floor, lim
	switch lim.kind {
	case buckets:
		made.bucket.SetFloor(floor)
	case counters:
		made.counter.SetFloor(floor)
	case slidings:
		made.sliding.SetFloor(floor)
	case runs:
		made.runs.SetFloor(floor)
	case leases:
		made.lease.SetFloor(floor)
	}
	var all []*compiledLimit
	if old != nil && len(*old) < maxFloors {
		all = append(all, *old...)
	}
	all = append(all, made)
	lim.floors.CompareAndSwap(old, &all) // otherwise it is made again at the next call
	return made
}
