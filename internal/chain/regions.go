package chain

import (
	"context"
	"hash/fnv"
	"time"
)

// Regions is what a store does for a fleet in several regions, each of which has a store of its
// own: it lists what has changed, and takes over what another region has counted. Counts are
// those of instances, each with the number of its last tally, so that a store may be told
// the same any number of times, in any order and by any way. Package region is what uses it.
type Regions interface {
	// Feed lists counters that have changed since q.Since, the oldest change first.
	Feed(ctx context.Context, q FeedQuery) (Feed, error)
	// Merge takes over counters of another region, at most MaxMerge at once. An error means
	// that some may be missing; whoever sends them again does no harm.
	Merge(ctx context.Context, g Greeting, counters []Replica) (Welcome, error)
	// Heard tells until when what other regions have counted is known here, by their names, and
	// what the time is by the same clock.
	Heard(ctx context.Context) (at map[string]time.Time, now time.Time, err error)
}

// MaxMerge is how many counters one call of Merge has.
const MaxMerge = 512

// FeedQuery asks a region's store what another region has to be told.
type FeedQuery struct {
	To     string    // the other region
	Holder [2]uint64 // random: who asks
	// Hold is for how long nobody else is to ask in the name of To.
	Hold time.Duration
	// Since is what Feed.Last was; 0 is the beginning.
	Since int64
	// Own is the number of the region that is asked: what its instances have counted since is
	// listed. All: what instances of all regions have counted.
	Own int64
	All bool
	// Save is kept for whoever asks next, unless it is "".
	Save string
}

// Feed is a part of what has changed.
type Feed struct {
	Held     bool   // by whoever asked; otherwise there is nothing in it but DataSet
	Saved    string // see FeedQuery.Save
	DataSet  string // another one when the store has lost what it had, or may have
	Counters []Replica
	Last     int64 // since when to ask next,
	More     bool  // which is at once
	Left     int   // counters that are not among them, as they are too large
}

// Greeting is what a region says beside what it has counted.
type Greeting struct {
	From string // its name
	To   int64  // the number of the region that is told
	// Age is how old the oldest thing is that From has not told; below 0: it is not known.
	Age time.Duration
}

// Welcome is the answer to Merge.
type Welcome struct {
	DataSet string // as in Feed
}

// Replica is a counter as one store tells another.
type Replica struct {
	Name       string // of the counter, the same in all stores
	Generation int64
	Parts      []TallyPart // without counts
	Instances  []ReplicaInstance
}

// ReplicaInstance is what one instance has counted.
type ReplicaInstance struct {
	ID     [2]uint64
	Number uint64 // of its last tally
	Region int64  // that it is in
	Counts []TallyPart
}

// RegionNumber is the number by which stores know a region.
func RegionNumber(name string) int64 {
	if name == "" {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // never fails
	return int64(h.Sum64()>>16) | 1
}
