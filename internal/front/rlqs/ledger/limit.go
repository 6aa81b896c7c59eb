package ledger

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Limit is the token bucket that is divided: Events per Period, Burst at once.
type Limit struct {
	Events int64
	Period time.Duration
	Burst  int64
}

// perSecond returns the rate in tokens per second.
func (l Limit) perSecond() float64 { return float64(l.Events) / l.Period.Seconds() }

// Times are those of assignments.
type Times struct {
	// TTL is how long an assignment lasts at a node.
	TTL time.Duration
	// Delivery is the longest time from a decision of the ledger until the node applies it. The
	// node's own delay counts, also when it notices an expiry late.
	Delivery time.Duration
}

// Check returns what is wrong with t; nil if nothing is.
func (t Times) Check() error {
	switch {
	case t.Delivery <= 0:
		return errors.New("the time of delivery must be positive")
	case t.TTL < 2*t.Delivery:
		return fmt.Errorf("an assignment of %v cannot be extended in time if its delivery takes up to %v: make it %v or longer", t.TTL, t.Delivery, 2*t.Delivery)
	}
	return nil
}

// Out returns how long after its decision an assignment is outstanding.
func (t Times) Out() time.Duration { return t.TTL + t.Delivery }

// Renewal returns the interval at which an assignment is sent again.
func (t Times) Renewal() time.Duration { return (t.TTL - t.Delivery) / 2 }

// Latest returns for how long after its decision an assignment is sure to be extended by sending it
// again.
func (t Times) Latest() time.Duration { return t.TTL - t.Delivery }

// Strategy is a token bucket for one node: it starts with Max tokens and is refilled with Fill
// tokens per Interval. The zero value admits nothing.
type Strategy struct {
	Max, Fill int64
	Interval  time.Duration
}

// Denies reports whether s admits nothing.
func (s Strategy) Denies() bool { return s.Fill == 0 }

// perSecond returns the rate in tokens per second.
func (s Strategy) perSecond() float64 {
	if s.Fill == 0 {
		return 0
	}
	return float64(s.Fill) / s.Interval.Seconds()
}

// grains is the least number of parts that a rate is divided into. maxFill is the largest number
// in the protocol.
const (
	grains  = 64
	maxFill = math.MaxUint32
)

// division is the unit in which a rate is handed out: whole tokens per interval.
type division struct {
	interval time.Duration // whole seconds: Envoy ignores fractions
	fill     int64         // of all nodes together
}

// rounding is the error of floating point that is tolerated, in tokens.
const rounding = 1e-9

// divide returns the shortest interval, in whole seconds, in which l refills at least grains tokens,
// and how many it refills.
func (l Limit) divide() division {
	seconds := int64(math.Ceil(grains / l.perSecond()))
	d := division{interval: time.Duration(max(seconds, 1)) * time.Second}
	d.fill = int64(min(math.Floor(l.perSecond()*d.interval.Seconds()+rounding), maxFill))
	return d
}

// Ahead is how assignments of a limit that a fleet shares are paid.
type Ahead struct {
	// Floor is how many tokens must remain after every take.
	Floor int64
	span  int64         // tokens above the floor in a full bucket
	spare int64         // of these, what a new epoch leaves for extensions
	reach time.Duration // see the package comment
}

// NewAhead returns how assignments of l are paid. The error says how large the burst of l must be.
func NewAhead(l Limit, t Times) (Ahead, error) {
	out := t.Out().Seconds()
	least := 2*l.perSecond()*out + 4
	if float64(l.Burst) < least {
		return Ahead{}, fmt.Errorf("its burst is %d and must be at least %.0f: assignments are paid %v ahead, and as much must remain", l.Burst, math.Ceil(least), t.Out())
	}
	reach := float64(l.Burst)/(2*l.perSecond()) - out
	span := l.Burst / 2
	spare := min(int64(l.perSecond()*t.Renewal().Seconds()), span/4)
	return Ahead{Floor: l.Burst - span, span: span, spare: spare, reach: time.Duration(reach * float64(time.Second))}, nil
}
