package node

import (
	"errors"
	"time"

	"tidegate.dev/tidegate"
)

// Defaults of Options.
const (
	DefaultDeadline    = 25 * time.Millisecond
	DefaultInFlight    = 4096
	DefaultFailures    = 5
	DefaultLocalBytes  = 64 << 20
	DefaultRemember    = 1 << 16
	DefaultDenyEntries = 1 << 16
)

// Options of a Node. Every field has a default.
type Options struct {
	// Name is what the backend is called in messages; "" means "the store".
	Name string
	// Deadline is how long a request waits for an answer of the backend, or up to 1/64
	// less; 0 means DefaultDeadline. A request that is only queued behind others may wait up
	// to half a second more, unless the backend is silent for as long as the deadline.
	Deadline time.Duration
	// InFlight bounds the calls in flight at each server, including those that nobody waits
	// for any more; 0 means DefaultInFlight. Beyond that, fallbacks decide at once.
	InFlight int
	// Failures is how many requests must fail for the circuit to open, and at least as
	// many must fail as succeed meanwhile; 0 means DefaultFailures.
	Failures int
	// Default is the fallback for limits whose Terms name none; tidegate.FailDefault means
	// tidegate.FailLocal.
	Default tidegate.FailMode
	// Instances returns how many nodes share the limits, this one included; nil means one.
	// It is called for every decision of the local store.
	Instances func() int
	// LocalBytes bounds the local store; 0 means DefaultLocalBytes.
	LocalBytes int64
	// Remember is how many counters the Node remembers the last known use of, at 16 bytes
	// each; 0 means DefaultRemember. Those seen longest ago are forgotten first.
	Remember int
	// DenyEntries is how many refusals are remembered, about 80 bytes each; 0 means
	// DefaultDenyEntries, less than that none.
	DenyEntries int
	// Skew is how far the wall clock of this process is ahead, for simulations of machines
	// whose clocks differ.
	Skew time.Duration
	// OnState is called after changes of state, one call at a time and in order. A state
	// that has ended before OnState could be called for it is left out.
	OnState func(Health)
	// OnUnasked is called when the backend cannot be asked about a rule, and when that is
	// over; not for every request.
	OnUnasked func(Unasked)
	// OnLostLease is called when leases are found to have run out, and when none was for a
	// minute; not for each.
	OnLostLease func(LostLease)
	// OnCall is called with how long each call of the backend for requests took,
	// including those that nobody waited for any more.
	OnCall func(took time.Duration)
}

// clock returns the wall clock for the local store; nil means the system's.
func (o *Options) clock() func() time.Time {
	if o.Skew == 0 {
		return nil
	}
	skew := o.Skew
	return func() time.Time { return time.Now().Add(skew) }
}

// complete replaces zero values by the defaults.
func (o *Options) complete() {
	if o.Name == "" {
		o.Name = "the store"
	}
	if o.Deadline <= 0 {
		o.Deadline = DefaultDeadline
	}
	if o.InFlight <= 0 {
		o.InFlight = DefaultInFlight
	}
	if o.Failures <= 0 {
		o.Failures = DefaultFailures
	}
	if o.Default == tidegate.FailDefault {
		o.Default = tidegate.FailLocal
	}
	if o.Instances == nil {
		o.Instances = func() int { return 1 }
	}
	if o.LocalBytes <= 0 {
		o.LocalBytes = DefaultLocalBytes
	}
	if o.Remember <= 0 {
		o.Remember = DefaultRemember
	}
	if o.DenyEntries == 0 {
		o.DenyEntries = DefaultDenyEntries
	}
}

var (
	// ErrTimeout is the reason when the backend has no answer by the deadline. It may
	// still be charged.
	ErrTimeout = errors.New("the store did not answer in time")
	// ErrBusy is the reason when too many calls are in flight. Nothing was charged.
	ErrBusy error = busy{}
	// ErrOpen is the reason when the backend has failed too often to be asked. It
	// wraps the last failure.
	ErrOpen = errors.New("circuit open")
)

type busy struct{}

func (busy) Error() string { return "too many calls wait for the store" }

// Busy lets layers above recognize the error without importing this package.
func (busy) Busy() bool { return true }
