package pressure

import (
	"sync/atomic"
	"time"
)

const (
	inflightEvery = 50 * time.Millisecond // a new look at most
	inflightOver  = time.Second           // what the average is over, about
)

// inflight is how many requests are at the upstream.
type inflight struct {
	count atomic.Int64
	moved atomic.Int64 // when one was last over, or the first came
	measured
}

func (i *inflight) add(delta int, now time.Duration) {
	n := i.count.Add(int64(delta))
	if delta < 0 || n == int64(delta) {
		i.moved.Store(int64(now))
	}
}

// average moves towards the count of the moment: a single look at it would be a
// throw of dice.
func (i *inflight) average(now time.Duration) float64 {
	return i.read(now, inflightEvery, func(last *reading) reading {
		value := float64(i.count.Load())
		if last != nil {
			value = smooth(last.value, value, now-last.at, inflightOver)
		}
		return reading{value: value, known: true}
	}).value
}

// silent is how long something has been at the upstream and nothing came back.
func (i *inflight) silent(now time.Duration) time.Duration {
	if i.count.Load() <= 0 {
		return 0
	}
	return now - time.Duration(i.moved.Load())
}
