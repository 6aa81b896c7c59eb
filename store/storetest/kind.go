package storetest

import (
	"time"

	"tidegate.dev/tidegate"
)

// kind is an algorithm with a way to make limits of it by their capacity.
type kind struct {
	name   string
	spec   tidegate.Spec // Events and Period of a limit that turns within minutes
	slowly time.Duration // a period in which nothing comes back during a test
}

// minute is the period that the brisk limits of every kind but quota have.
const minute = time.Minute

// ages is a period whose aligned windows roll once in a year.
const ages = 360 * 24 * time.Hour

var kinds = []kind{
	{"token_bucket", tidegate.Spec{Algorithm: tidegate.TokenBucket}, 24 * time.Hour},
	{"leaky_bucket", tidegate.Spec{Algorithm: tidegate.LeakyBucket}, 0},
	{"fixed_window", tidegate.Spec{Algorithm: tidegate.FixedWindow}, ages},
	{"sliding_log", tidegate.Spec{Algorithm: tidegate.SlidingLog}, 24 * time.Hour},
	{"sliding_window", tidegate.Spec{Algorithm: tidegate.SlidingWindow}, ages},
	{"sliding_window ceiling", tidegate.Spec{Algorithm: tidegate.SlidingWindow, Ceiling: true}, ages},
	{"sub_windows", tidegate.Spec{Algorithm: tidegate.SubWindows, Parts: 6}, ages},
	{"sub_windows ceiling", tidegate.Spec{Algorithm: tidegate.SubWindows, Parts: 6, Ceiling: true}, ages},
	{"quota", tidegate.Spec{Algorithm: tidegate.Quota, Calendar: tidegate.Year}, 0},
	{"concurrency", tidegate.Spec{Algorithm: tidegate.Concurrency}, time.Hour},
}

// part returns the longest that the oldest events of a kind count on after their period: as long
// as the part of the window that they are counted in.
func (k kind) part() time.Duration {
	if k.spec.Algorithm == tidegate.SlidingWindow && k.spec.Ceiling {
		return k.period()
	}
	return k.period() / 6
}

// slow returns a limit that lets n through and then nobody for the rest of a test.
func (k kind) slow(name string, n int64) *tidegate.Limit {
	spec := k.spec
	spec.Name, spec.Events, spec.Period = name+" "+k.name, n, k.slowly
	if spec.Algorithm == tidegate.LeakyBucket {
		// One leaves every half minute: longer than a test, and short enough
		// for a queue of a hundred to be served within leakyWait.
		spec.Events, spec.Period, spec.Burst = 2, time.Minute, n-1
	}
	return tidegate.MustLimit(spec)
}

// brisk returns a limit that lets n through a minute (a day, for a quota).
func (k kind) brisk(name string, n int64) *tidegate.Limit {
	spec := k.spec
	spec.Name, spec.Events, spec.Period = name+" "+k.name, n, minute
	switch spec.Algorithm {
	case tidegate.LeakyBucket:
		spec.Burst = n - 1
	case tidegate.Quota:
		spec.Calendar, spec.Period = tidegate.Day, 0
	}
	return tidegate.MustLimit(spec)
}

// period returns the time that a brisk limit turns in.
func (k kind) period() time.Duration {
	if k.spec.Algorithm == tidegate.Quota {
		return 24 * time.Hour
	}
	return minute
}

// leakyWait is how long a request waits in the line of a leaky bucket.
const leakyWait = time.Hour

// check returns a check of limit for key. In a leaky bucket it waits in line, so that
// its capacity can be used at one instant, like that of the others.
func check(l *tidegate.Limit, key string, cost int64) tidegate.Check {
	c := tidegate.Check{Key: key, Limit: l, Cost: cost}
	if l.Algorithm == tidegate.LeakyBucket {
		c.MaxWait = leakyWait
	}
	return c
}

// advisory returns a check that is asked for advice only.
func advisory(l *tidegate.Limit, key string, cost int64) tidegate.Check {
	c := check(l, key, cost)
	c.Advisory = true
	return c
}
