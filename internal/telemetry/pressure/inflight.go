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
	measured
}

// average returns the average of about a second. A single reading of the count would be random.
func (i *inflight) average(now time.Duration) float64 {
	return i.read(now, inflightEvery, func(last *reading) reading {
		value := float64(i.count.Load())
		if last != nil {
			value = smooth(last.value, value, now-last.at, inflightOver)
		}
		return reading{value: value, known: true}
	}).value
}

// unanswered is how many requests at the upstream wait for the beginning of its answer. A request that
// is answered may stay there for hours, as a stream or a tunnel, and no longer counts.
type unanswered struct {
	count atomic.Int64
	moved atomic.Int64 // when one was last answered, or the first came
}

func (u *unanswered) add(delta int, now time.Duration) {
	n := u.count.Add(int64(delta))
	if delta < 0 || n == int64(delta) {
		u.moved.Store(int64(now))
	}
}

// silent returns for how long requests have waited and none was answered.
func (u *unanswered) silent(now time.Duration) time.Duration {
	if u.count.Load() <= 0 {
		return 0
	}
	return now - time.Duration(u.moved.Load())
}
