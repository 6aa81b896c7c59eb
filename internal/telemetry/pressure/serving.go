package pressure

import (
	"sync/atomic"
	"time"
)

// serving is how many requests this process is busy with, those that wait included.
type serving struct {
	count atomic.Pointer[func() int64] // nil means it is not known
	measured
}

// average returns the average of about a second; it is unknown until the count is.
func (s *serving) average(now time.Duration) (float64, bool) {
	count := s.count.Load()
	if count == nil {
		return 0, false
	}
	r := s.read(now, inflightEvery, func(last *reading) reading {
		value := float64((*count)())
		if last != nil && last.known {
			value = smooth(last.value, value, now-last.at, inflightOver)
		}
		return reading{value: value, known: true}
	})
	return r.value, r.known
}
