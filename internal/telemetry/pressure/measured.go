package pressure

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// measured caches a value. The first caller after an interval measures it again.
type measured struct {
	last atomic.Pointer[reading]
	mu   sync.Mutex // held while it is measured
}

type reading struct {
	at    time.Duration
	value float64
	known bool
}

// read returns the last reading if it is younger than every, or else a new one from take, whose argument
// is the last one; nil at first.
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

// smooth returns an average that has moved towards a value for dt: after `over` it has come two thirds
// of the way.
func smooth(average, value float64, dt, over time.Duration) float64 {
	return average + (value-average)*(1-math.Exp(-dt.Seconds()/over.Seconds()))
}
