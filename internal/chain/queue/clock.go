package queue

import "time"

// Clock is the clock that booked turns go by.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f on a goroutine of its own after d.
	AfterFunc(d time.Duration, f func()) Alarm
}

// Alarm is a timer of AfterFunc, with the methods of time.Timer.
type Alarm interface {
	Reset(d time.Duration) bool
	Stop() bool
}

// systemClock is the clock of the machine.
type systemClock struct{}

func (systemClock) Now() time.Time                            { return time.Now() }
func (systemClock) AfterFunc(d time.Duration, f func()) Alarm { return time.AfterFunc(d, f) }
