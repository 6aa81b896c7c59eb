package chain

import (
	"context"
	"time"

	"tidegate.dev/tidegate"
)

// Tallies is where instances add up what each of them has counted by itself. Package eventual
// is what uses it.
type Tallies interface {
	// Exchange tells what this instance has counted, and writes the answers into the tallies.
	// An error means that none was answered. At most MaxTallies are sent at once.
	Exchange(ctx context.Context, tallies []Tally) error
	// Time is the clock by which all instances name the parts of time.
	Time(ctx context.Context) (time.Time, error)
}

// MaxTallies is how many tallies one exchange has.
const MaxTallies = 512

// Tally is what one instance has counted of one counter. Counts are cumulative, so the same
// tally may be sent any number of times, and nothing is counted twice.
type Tally struct {
	Limit *tidegate.Limit
	Key   string
	// Region is the number of the region that the instance is in, if the counter is one of
	// several regions; 0 otherwise. See RegionNumber.
	Region int64
	// Instance is random: whose counts these are. Whoever starts to count anew has another one.
	Instance [2]uint64
	// Number rises from one tally of the instance to the next: an older one that arrives later
	// changes nothing.
	Number uint64
	// Generation is how often the counter was reset, as far as the instance knows. Counts from
	// before a reset change nothing.
	Generation int64
	// Demand is how many events the instance was asked for in an interval of late, and
	// DemandLasts for how long that is worth knowing.
	Demand      int64
	DemandLasts time.Duration
	// Parts are all counts that matter, the oldest first.
	Parts []TallyPart
	// Reset forgets what everybody has counted. The parts are not looked at.
	Reset bool

	// Answer is written by Exchange, unless Err says why there is none.
	Answer TallyAnswer
	Err    error
}

// TallyPart is a window, or a part of one, and how many events it has.
type TallyPart struct {
	Start int64 // µs since the Unix epoch: its name
	End   int64 // when it no longer matters to any decision; in answers 0
	Count int64
	// Abroad is how many of Count are of other regions, in answers.
	Abroad int64
}

// TallyAnswer is what all instances together have counted.
type TallyAnswer struct {
	// Generation is that of the counter. If it is above that of the tally, the tally was not
	// counted.
	Generation int64
	// Demand is the sum over the other instances that have told theirs of late.
	Demand int64
	// Totals are of all instances, this one and those that are gone included.
	Totals []TallyPart
}
