package main

import (
	"fmt"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// Everything is held to the same limit, in µs as the laws count.
const (
	events = 100
	window = int64(time.Minute / time.Microsecond)
)

// contestant is an algorithm with its settings.
type contestant struct {
	name  string // as in the plots
	short string // as in the tables, where room is scarce
	spec  tidegate.Spec
}

// contestants returns the algorithms that answer at once. leaky_bucket makes requests wait instead of
// refusing them, concurrency counts no events, and quota is a fixed window.
func contestants() []contestant {
	parts := func(n int, ceiling bool) tidegate.Spec {
		return tidegate.Spec{Algorithm: tidegate.SubWindows, Parts: n, Ceiling: ceiling}
	}
	all := []contestant{
		{"fixed_window", "fixed", tidegate.Spec{Algorithm: tidegate.FixedWindow}},
		{"token_bucket, burst L", "token", tidegate.Spec{Algorithm: tidegate.TokenBucket, Burst: events}},
		{"token_bucket, burst L/10", "token L/10", tidegate.Spec{Algorithm: tidegate.TokenBucket, Burst: events / 10}},
		{"sliding_window", "sliding", tidegate.Spec{Algorithm: tidegate.SlidingWindow}},
		{"sub_windows, 6 parts", "sub 6", parts(6, false)},
		{"sub_windows, 60 parts", "sub 60", parts(60, false)},
		{"sub_windows, 6, ceiling", "ceiling 6", parts(6, true)},
		{"sub_windows, 60, ceiling", "ceiling 60", parts(60, true)},
		{"sliding_log", "log", tidegate.Spec{Algorithm: tidegate.SlidingLog}},
	}
	for i := range all {
		all[i].spec.Events = events
		all[i].spec.Period = time.Minute
	}
	return all
}

// gate is a law with the state of one key.
type gate interface {
	// take asks for one event at an instant in µs, not before the last one.
	take(us int64) bool
	// reset makes it a key never seen before.
	reset()
}

func newGate(c contestant) gate {
	limit := tidegate.MustLimit(c.spec)
	switch limit.Algorithm {
	case tidegate.TokenBucket:
		return &bucketGate{law: algo.NewBucketLaw(limit)}
	case tidegate.FixedWindow:
		return &counterGate{law: algo.NewCounterLaw(limit), limit: limit}
	case tidegate.SlidingWindow:
		return &slidingGate{law: algo.NewSlidingLaw(limit)}
	case tidegate.SlidingLog:
		law := algo.NewLogLaw(limit)
		return &logGate{law: law, record: algo.NewRecord(algo.RunsHeader + law.MaxEntries())}
	case tidegate.SubWindows:
		law := algo.NewPartsLaw(limit)
		return &partsGate{law: law, record: algo.NewRecord(algo.RunsHeader + law.MaxEntries())}
	}
	panic(fmt.Sprintf("accuracy: %s does not decide at once", limit.Algorithm))
}
