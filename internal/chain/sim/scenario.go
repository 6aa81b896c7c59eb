package sim

import (
	"slices"
	"time"

	"tidegate.dev/tidegate"
)

// MaxNodes is how many nodes a Scenario may have.
const MaxNodes = 200

// Scenario is everything that happens in a run. It is a value: the same Scenario with the
// same Seed gives the same faults, delays and traffic.
type Scenario struct {
	Name  string
	Seed  uint64
	Nodes int           // 1 to MaxNodes
	Lasts time.Duration // how long there is traffic

	Subjects []Subject
	Shape    Shape
	// Deadline of the nodes; 0 means the default of package node.
	Deadline time.Duration
	// Rollout is when the nodes change from the first version of every limit to the last,
	// one after the other. Zero means that none changes: the versions are dealt to the nodes
	// in turn.
	Rollout Span

	// Skew is how far the clock of a node is ahead or behind at most.
	Skew    time.Duration
	Network Network
	Server  Server
	Faults  []Fault
	Regions Regions
}

// Subject is a limit under load.
type Subject struct {
	Name string
	// Versions of the limit: one, or several that nodes disagree about.
	Versions []*tidegate.Limit
	Keys     int
	// Load is how much is offered, as a multiple of what the first version admits in the whole
	// run, for all keys.
	Load float64
	// PerSecond is how many requests come in a second, for all keys, instead of Load.
	PerSecond float64
	// Cost of a request; 0 means 1.
	Cost int64
	// Hold is how long a request keeps a slot of a concurrency limit.
	Hold time.Duration
}

// Span is from one time since the beginning until another.
type Span struct{ From, To time.Duration }

func (s Span) has(t time.Duration) bool { return s.From <= t && t < s.To }

// Network is the way from a node to Redis.
type Network struct {
	Latency time.Duration // of a round trip
	Jitter  time.Duration // a round trip takes up to this much longer, each way up to half of it
	// Loss is the share of messages that arrive only after TCP has sent them again, 200 ms
	// later; what was sent after them on the same connection waits for them.
	Loss float64
}

// Server is the simulated Redis.
type Server struct {
	PerCall time.Duration // how long it works on a call
	Skew    time.Duration // how far its clock is ahead of those of the nodes at the beginning
	Drift   float64       // how fast its clock gains on theirs: 0.001 is a millisecond a second
}

// Shape is how load is spread over time and nodes.
type Shape uint8

// The shapes of load.
const (
	Even  Shape = iota // the same on all nodes, all the time
	One                // all on the first node
	Burst              // five times as much in a fifth of every second, nothing otherwise
	Ramp               // from nothing to twice as much
	Flash              // a fifth as much, but ten times as much in the middle tenth
	shapes
)

var shapeNames = [...]string{"even", "one", "burst", "ramp", "flash"}

func (s Shape) String() string { return shapeNames[s] }

// at returns by what the rate of a Subject is multiplied at time t of a run that lasts so long.
func (s Shape) at(t, lasts time.Duration) float64 {
	switch s {
	case Burst:
		if t%time.Second < time.Second/5 {
			return 5
		}
		return 0
	case Ramp:
		return 2 * t.Seconds() / lasts.Seconds()
	case Flash:
		if x := t.Seconds() / lasts.Seconds(); x >= 0.45 && x < 0.55 {
			return 10
		}
		return 0.2
	default:
		return 1
	}
}

// period returns how long a limit looks back.
func period(l *tidegate.Limit) time.Duration {
	if l.Algorithm != tidegate.Quota {
		return l.Period
	}
	return calendars[l.Calendar]
}

const day = 24 * time.Hour

// calendars are the approximate lengths of the periods of quotas.
var calendars = [...]time.Duration{tidegate.Day: day, tidegate.Week: 7 * day, tidegate.Month: 30 * day, tidegate.Year: 365 * day}

// rate returns how many events a second a limit admits for one key in the long run.
func rate(l *tidegate.Limit) float64 { return float64(l.Events) / period(l).Seconds() }

// admits returns how many requests a limit admits in a run that lasts so long, for all keys.
func (sub *Subject) admits(l *tidegate.Limit, lasts time.Duration) float64 {
	if l.Algorithm == tidegate.Concurrency {
		return float64(l.Events) * float64(sub.Keys) * lasts.Seconds() / sub.Hold.Seconds()
	}
	burst := float64(l.Capacity())
	if l.Algorithm == tidegate.LeakyBucket {
		burst = float64(sub.Cost) // nobody who is simulated waits for a turn
	}
	return (burst + rate(l)*lasts.Seconds()) * float64(sub.Keys) / float64(sub.Cost)
}

// ParseShape returns the shape of that name; false means that there is none.
func ParseShape(name string) (Shape, bool) {
	i := slices.Index(shapeNames[:], name)
	return Shape(max(i, 0)), i >= 0
}
