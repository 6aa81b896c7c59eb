package chain

import (
	"context"
	"hash/fnv"
	"time"
)

// Regions is what a store does for a fleet in several regions, each of which has a store of its
// own: it lists what has changed, and merges what another region has counted. Counts are kept by
// instance, each with the number of its last tally, so that the same counts may arrive any
// number of times, in any order and by any route. Package region uses it.
type Regions interface {
	// Feed lists counters that have changed since q.Since, the oldest change first.
	Feed(ctx context.Context, q FeedQuery) (Feed, error)
	// Merge merges counters of another region, at most MaxMerge at once. An error means that
	// some may be missing; sending them again does no harm.
	Merge(ctx context.Context, g Greeting, counters []Replica) (Welcome, error)
	// Heard returns, by the name of each other region, the time up to which its counts are known
	// here, and the current time by the same clock.
	Heard(ctx context.Context) (at map[string]time.Time, now time.Time, err error)
}

// MaxMerge is how many counters one call of Merge takes.
const MaxMerge = 512

// FeedQuery asks the store of a region for what another region has to be sent.
type FeedQuery struct {
	To     string    // the other region
	Holder [2]uint64 // random: names the process that asks
	// Hold is how long no other Holder is to ask on behalf of To.
	Hold time.Duration
	// Since is Feed.Last of the previous answer; 0 asks from the beginning.
	Since int64
	// Own is the number of the region that is asked: only what its instances have counted is
	// listed. With All, what the instances of all regions have counted.
	Own int64
	All bool
	// Save, unless "", is kept for the next Holder, which gets it as Feed.Saved.
	Save string
}

// Feed is a part of what has changed.
type Feed struct {
	Held     bool   // the Holder that asked has the hold; otherwise only DataSet is set
	Saved    string // see FeedQuery.Save
	DataSet  string // changes when the store has lost its data, or may have
	Counters []Replica
	Last     int64 // what FeedQuery.Since is to be next
	More     bool  // there is more: ask again at once
	Left     int   // how many counters were left out because they are too large
}

// Greeting comes with the counters that one region sends to another.
type Greeting struct {
	From string // its name
	To   int64  // the number of the region that receives them
	// Age is how old the oldest change is that From has not sent yet; below 0 means not known.
	Age time.Duration
}

// Welcome is the answer to Merge.
type Welcome struct {
	DataSet string // as in Feed
}

// Replica is a counter as one store sends it to another.
type Replica struct {
	Name       string // the same in all stores
	Generation int64
	Parts      []TallyPart // without counts
	Instances  []ReplicaInstance
}

// ReplicaInstance is what one instance has counted.
type ReplicaInstance struct {
	ID     [2]uint64
	Number uint64 // of its last tally
	Region int64  // the number of its region
	Counts []TallyPart
}

// RegionNumber returns the number by which stores know a region; 0 for no name.
func RegionNumber(name string) int64 {
	if name == "" {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // never fails
	return int64(h.Sum64()>>16) | 1
}
