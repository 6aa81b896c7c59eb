package pressure

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// measured is a value that is measured at most every so often, by whoever asks
// first.
type measured struct {
	last atomic.Pointer[reading]
	mu   sync.Mutex // held while it is measured
}

type reading struct {
	at    time.Duration
	value float64
	known bool
}

// read returns the last reading, or after that long a new one. take is given the
// last, nil at first.
func (m *measured) read(now, every time.Duration, take func(last *reading) reading) *reading {
	if r := m.last.Load(); r != nil && now-r.at < every {
		return r
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.last.Load()
	if last != nil && now-last.at < every {
		return last
	}
	r := take(last)
	r.at = now
	m.last.Store(&r)
	return &r
}

// smooth moves an average towards a value that has held for dt: after `over` it
// has come two thirds of the way.
func smooth(average, value float64, dt, over time.Duration) float64 {
	return average + (value-average)*(1-math.Exp(-dt.Seconds()/over.Seconds()))
}
