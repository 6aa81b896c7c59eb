// Package region is for fleets in several regions, each of which has a store of its own. It sends what
// instances have counted in this region to the stores of the others, and knows when each of those was
// last heard of. It does not decide requests: package eventual does, by these counts.
//
//	region eu: instances ── tallies → store ── Syncer: what has changed → store of us
//	                                    ↑
//	                                  Watch: when was us heard of?
//
// It sends what each instance has counted, by window, with the number of its last tally. So everything
// may be sent twice, late, by several processes at once or by way of another region, and still counts
// once. A store that has lost its data gets everything from the others, including what its own
// instances had counted.
//
// Start with [Sync] and [NewWatch].
package region

import "time"

// Times of an exchange between regions.
const (
	// Interval is how often changes are sent to a region.
	Interval = 100 * time.Millisecond
	// PartitionAfter is how long a region is not heard of before it counts as cut off.
	PartitionAfter = 5 * time.Second
	// hold is how long after its last call one of several processes remains the only one that sends
	// to a region.
	hold = 2 * time.Second
	// callTime bounds each of the two calls of a round, and maxBackOff the pause after a failure,
	// before jitter.
	callTime   = 2 * time.Second
	maxBackOff = time.Second
)

// Rank returns the place of a region among all, from 0, in the order of their names.
func Rank(own string, others []string) (rank int) {
	for _, name := range others {
		if name < own {
			rank++
		}
	}
	return rank
}
