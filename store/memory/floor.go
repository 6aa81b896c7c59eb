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
	b, err := s.compile(c.Limit)
	if err != nil || c.Floor == 0 {
		return b, err
	}
	if c.Floor < 0 {
		return nil, fmt.Errorf("memory: Take(%s): floor is %d; want 0 or more", c.Limit, c.Floor)
	}
	return b.withFloor(c.Floor), nil
}

// withFloor returns b for requests that have to leave floor events.
func (b *compiledLimit) withFloor(floor int64) *compiledLimit {
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
	made := newCompiledLimit(b.limit, b.table, b.budget)
	made.floor, made.fits = floor, made.fits-floor
	switch b.kind {
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
	b.floors.CompareAndSwap(old, &all) // otherwise it is made again at the next call
	return made
}
