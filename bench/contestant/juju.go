package contestant

import (
	"sync"

	"github.com/juju/ratelimit"
)

func jujuBucket() Contestant {
	return Contestant{
		Name:    "juju/ratelimit, map+mutex",
		Version: "github.com/juju/ratelimit v1.0.2",
		Make: func(q Quota) func() Run {
			m := &jujuMap{rate: float64(q.Events) / q.Period.Seconds(), burst: q.Burst, buckets: make(map[string]*ratelimit.Bucket)}
			return shared(m.run)
		},
	}
}

type jujuMap struct {
	rate  float64
	burst int64

	mu      sync.Mutex
	buckets map[string]*ratelimit.Bucket
}

func (m *jujuMap) allow(key string) bool {
	m.mu.Lock()
	b, ok := m.buckets[key]
	if !ok {
		b = ratelimit.NewBucketWithRate(m.rate, m.burst)
		m.buckets[key] = b
	}
	m.mu.Unlock()
	return b.TakeAvailable(1) == 1
}

func (m *jujuMap) run(keys []string) (admitted int) {
	for _, key := range keys {
		if m.allow(key) {
			admitted++
		}
	}
	return admitted
}
