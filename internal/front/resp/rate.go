package resp

import (
	"fmt"
	"hash/maphash"
	"math/bits"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
)

// triple is what CL.THROTTLE says of a limit.
type triple struct{ burst, count, period int64 }

// rate is a triple made ready.
type rate struct {
	triple
	limit *tidegate.Limit
	// never: max_burst is below 0, and nothing ever fits. The limit is for looking at the
	// key.
	never bool
	em    float64   // how long an event takes to be regained, in ns
	begin [2]string // how answers start: [0] when allowed, [1] when limited
}

// ways and sets are the shape of rates.
const (
	ways = 4
	sets = 1024
)

// rates remembers as many triples as a store keeps ready. Others are made again when they
// are asked about, which is slower and not otherwise different: all have one identity, and so
// a key has one counter whatever the triple. Readers take no lock.
type rates struct {
	seed maphash.Seed
	fail tidegate.FailMode
	all  [sets]struct {
		ways [ways]atomic.Pointer[rate]
		next atomic.Uint32
	}
}

func (r *rates) init(fail tidegate.FailMode) { r.seed, r.fail = maphash.MakeSeed(), fail }

// get returns the rate of a triple, or what a client is told is wrong with it.
func (r *rates) get(t triple) (found *rate, wrong string) {
	set := &r.all[maphash.Comparable(r.seed, t)%sets]
	for i := range set.ways {
		if found = set.ways[i].Load(); found != nil && found.triple == t {
			return found, ""
		}
	}
	if found, wrong = r.make(t); wrong == "" {
		set.ways[set.next.Add(1)%ways].Store(found)
	}
	return found, wrong
}

const day = 24 * 60 * 60 // seconds

// make makes a triple ready, or returns what a client is told is wrong with it.
func (r *rates) make(t triple) (*rate, string) {
	switch {
	case t.count == 0 || t.period == 0:
		return nil, "Cell error: Store error: Zero rates are not supported"
	case t.count < 0 || t.period < 0:
		return nil, fmt.Sprintf("ERR %d per %d seconds: a rate cannot be negative", t.count, t.period)
	case t.period > 1<<40: // what is shorter fits the products below
		return nil, fmt.Sprintf("ERR a period of %d seconds is too long", t.period)
	case t.count > tidegate.MaxPerSecond*t.period:
		return nil, fmt.Sprintf("ERR %d per %d seconds is more than %d a second for one key: count in larger units", t.count, t.period, tidegate.MaxPerSecond)
	case (t.period-1)/(14*day) >= t.count:
		return nil, fmt.Sprintf("ERR %d per %d seconds is slower than one in 14 days", t.count, t.period)
	case t.burst >= tidegate.MaxCount:
		return nil, fmt.Sprintf("ERR a burst of %d: at most %d can be counted", t.burst, int64(tidegate.MaxCount-1))
	}
	// The same rate in a period, and with a count, that a limit can have.
	events, us := t.count, uint64(t.period)*1_000_000
	const most = 366 * day
	if t.period > most || events > tidegate.MaxCount {
		hi, lo := bits.Mul64(uint64(t.count), most)
		fits, _ := bits.Div64(hi, lo, uint64(t.period))
		events = int64(min(fits, tidegate.MaxCount))
		hi, lo = bits.Mul64(us, uint64(events))
		var rest uint64
		if us, rest = bits.Div64(hi, lo, uint64(t.count)); rest > 0 {
			us++
		}
	}
	made := &rate{triple: t, never: t.burst < 0}
	for i := range made.begin {
		made.begin[i] = fmt.Sprintf("*5\r\n:%d\r\n:%d\r\n", i, t.burst+1)
	}
	limit, err := tidegate.NewLimit(tidegate.Spec{
		Name: RuleName, Algorithm: tidegate.TokenBucket, RawTime: true,
		Events: events, Period: time.Duration(us) * time.Microsecond, Burst: max(t.burst+1, 1),
		Terms: &tidegate.Terms{Rule: RuleName, Handling: tidegate.Handling{OnStoreFailure: r.fail}},
	})
	if err != nil {
		return nil, "ERR " + err.Error()
	}
	made.limit = limit
	ticks := (us*1024 + uint64(events) - 1) / uint64(events) // as stores count it, of 1/1024 µs
	made.em = float64(ticks) * 1000 / 1024
	return made, ""
}
