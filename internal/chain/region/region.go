// Package region is for fleets in several regions, each of which has a store of its own. It tells the
// stores of other regions what instances have counted in this one, and knows when those were last
// heard of. It does not decide: package eventual does, by what is told.
//
//	region eu: instances ── tallies → store ── Syncer: what has changed → store of us
//	                                    ↑
//	                                  Watch: when was us heard of?
//
// What is told is what each instance has counted, in windows, with the number of its last tally; so all
// of it may be told twice, late, by several at once or by way of another region, and counts once. A
// store that has lost its data is told everything by the others, also what its own instances had counted.
//
// Start with [Sync] and [NewWatch].
package region

import "time"

// Times of an exchange between regions.
const (
	// Interval is between two rounds in which a region is told what has changed.
	Interval = 100 * time.Millisecond
	// PartitionAfter is after how long without a word a region counts as cut off.
	PartitionAfter = 5 * time.Second
	// hold is for how long one of several processes is the one that tells a region.
	hold = 2 * time.Second
	// callTime is how long a round may take each way, and maxBackOff how long after a failure the
	// next one begins at most.
	callTime   = 2 * time.Second
	maxBackOff = time.Second
)

// Rank is the place of a region among all, in the order of their names.
func Rank(own string, others []string) (rank int) {
	for _, name := range others {
		if name < own {
			rank++
		}
	}
	return rank
}
