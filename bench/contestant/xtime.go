package contestant

import (
	"sync"

	"github.com/puzpuzpuz/xsync/v4"
	"golang.org/x/time/rate"
)

// Baseline is golang.org/x/time/rate in a map with a mutex: what most Go
// services have today, and what the bars are measured against.
func Baseline() Contestant {
	return Contestant{
		Name:    "x/time/rate, map+mutex",
		Version: "golang.org/x/time v0.16.0",
		Make: func(q Quota) func() Run {
			return shared(newRateMap(q).run)
		},
	}
}

type rateMap struct {
	every rate.Limit
	burst int

	mu       sync.Mutex
	limiters map[string]*rate.Limiter
}

func newRateMap(q Quota) *rateMap {
	return &rateMap{every: perSecond(q), burst: int(q.Burst), limiters: make(map[string]*rate.Limiter)}
}

func (m *rateMap) allow(key string) bool {
	m.mu.Lock()
	lim, ok := m.limiters[key]
	if !ok {
		lim = rate.NewLimiter(m.every, m.burst)
		m.limiters[key] = lim
	}
	m.mu.Unlock()
	return lim.Allow()
}

func (m *rateMap) run(keys []string) (admitted int) {
	for _, key := range keys {
		if m.allow(key) {
			admitted++
		}
	}
	return admitted
}

// rateXsync returns the same with a concurrent map, for those who saw the mutex in
// a profile.
func rateXsync() Contestant {
	return Contestant{
		Name:    "x/time/rate, xsync map",
		Version: "github.com/puzpuzpuz/xsync/v4 v4.5.0",
		Make: func(q Quota) func() Run {
			limiters := xsync.NewMap[string, *rate.Limiter]()
			create := func() (*rate.Limiter, bool) {
				return rate.NewLimiter(perSecond(q), int(q.Burst)), false
			}
			return shared(func(keys []string) (admitted int) {
				for _, key := range keys {
					lim, _ := limiters.LoadOrCompute(key, create)
					if lim.Allow() {
						admitted++
					}
				}
				return admitted
			})
		},
	}
}

func perSecond(q Quota) rate.Limit {
	return rate.Limit(float64(q.Events) / q.Period.Seconds())
}
