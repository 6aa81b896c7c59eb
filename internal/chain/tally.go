package chain

import (
	"context"
	"time"

	"tidegate.dev/tidegate"
)

// Tallies adds up what each instance has counted by itself. Package eventual uses it.
type Tallies interface {
	// Exchange sends what this instance has counted, and writes the answers into the tallies.
	// An error means that none was answered. At most MaxTallies are sent at once.
	Exchange(ctx context.Context, tallies []Tally) error
	// Time returns the time by the clock that all instances use to name windows.
	Time(ctx context.Context) (time.Time, error)
}

// MaxTallies is how many tallies one exchange takes.
const MaxTallies = 512

// Tally is what one instance has counted of one counter. Counts are cumulative, so the same
// tally may be sent any number of times, and nothing is counted twice.
type Tally struct {
	Limit *tidegate.Limit
	Key   string
	// Region is the number of the instance's region (see RegionNumber) if several regions share
	// the counter; otherwise 0.
	Region int64
	// Instance is random and says whose counts these are. An instance that starts to count anew
	// takes another one.
	Instance [2]uint64
	// Number rises from one tally of the instance to the next: an older one that arrives later
	// changes nothing.
	Number uint64
	// Generation is how often the counter was reset, as far as the instance knows. Counts from
	// before a reset change nothing.
	Generation int64
	// Demand is how many events the instance was recently asked for per interval, and
	// DemandLasts how long the others go by that.
	Demand      int64
	DemandLasts time.Duration
	// Parts has all counts that still matter, the oldest first.
	Parts []TallyPart
	// Reset makes the store forget what all instances have counted. Parts is then ignored.
	Reset bool

	// Answer is written by Exchange, unless Err says why there is none.
	Answer TallyAnswer
	Err    error
}

// TallyPart is a window, or a part of one, and how many events it has.
type TallyPart struct {
	Start int64 // µs since the Unix epoch: its name
	End   int64 // when it ceases to matter to decisions, in µs since the Unix epoch; 0 in answers
	Count int64
	// Abroad is how many of Count were counted in other regions; set in answers only.
	Abroad int64
}

// TallyAnswer is what all instances together have counted.
type TallyAnswer struct {
	// Generation is that of the counter. If it is above that of the tally, the tally was not
	// counted.
	Generation int64
	// Demand is the sum of the current demands of all other instances.
	Demand int64
	// Totals has the counts of all instances together, this one and those that are gone included.
	Totals []TallyPart
}
