package queue

import "time"

// Clock is by which booked turns come.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f on a goroutine of its own after d.
	AfterFunc(d time.Duration, f func()) Alarm
}

// Alarm is what AfterFunc set.
type Alarm interface {
	Reset(d time.Duration) bool
	Stop() bool
}

// systemClock is that of the machine.
type systemClock struct{}

func (systemClock) Now() time.Time                            { return time.Now() }
func (systemClock) AfterFunc(d time.Duration, f func()) Alarm { return time.AfterFunc(d, f) }
