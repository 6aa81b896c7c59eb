package rls_test

import (
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/front/rls"
)

// keys remembers what was counted.
type keys struct {
	mu              sync.Mutex
	key             string
	hits            rls.Hits
	unknown, failed int
	calls           int
}

func (k *keys) Hits(_, key string, h rls.Hits) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.key = key
	k.hits.Total += h.Total
	k.hits.Over += h.Over
	k.hits.Near += h.Near
	k.hits.Within += h.Within
	k.hits.Shadow += h.Shadow
}

func (k *keys) UnknownDomain()         { k.mu.Lock(); defer k.mu.Unlock(); k.unknown++ }
func (k *keys) Failed()                { k.mu.Lock(); defer k.mu.Unlock(); k.failed++ }
func (k *keys) Answered(time.Duration) { k.mu.Lock(); defer k.mu.Unlock(); k.calls++ }

func (k *keys) last() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.key
}

// Hits are counted by what became of them, and those near the limit, as envoyproxy/ratelimit
// does.
func TestStats(t *testing.T) {
	f := func(descriptor string, hits []string, want rls.Hits) {
		t.Helper()
		o := inMemory(t, `
domain: d
descriptors:
  - { key: ten, rate_limit: { unit: hour, requests_per_unit: 10 } }
  - { key: shadowed, rate_limit: { unit: hour, requests_per_unit: 10 }, shadow_mode: true }
`)
		seen := &keys{}
		o.Stats = seen
		s := serve(t, o)
		for _, n := range hits {
			s.ask(request("d", descriptor+" hits "+n))
		}
		if seen.hits != want || seen.calls != len(hits) {
			t.Errorf("%s, hits %q: %+v of %d calls, want %+v", descriptor, hits, seen.hits, seen.calls, want)
		}
	}
	f("ten=x", []string{"1", "1"}, rls.Hits{Total: 2, Within: 2})
	f("ten=x", []string{"0"}, rls.Hits{})
	f("ten=x", []string{"8", "1", "1"}, rls.Hits{Total: 10, Within: 10, Near: 2})
	f("ten=x", []string{"9"}, rls.Hits{Total: 9, Within: 9, Near: 1})
	f("ten=x", []string{"10", "1", "3"}, rls.Hits{Total: 14, Within: 10, Near: 2, Over: 4})
	f("ten=x", []string{"9", "4"}, rls.Hits{Total: 13, Within: 9, Near: 2, Over: 3}) // one of the 4 was near
	f("ten=x", []string{"15"}, rls.Hits{Total: 15, Near: 2, Over: 5})
	f("shadowed=x", []string{"10", "1"}, rls.Hits{Total: 11, Within: 10, Near: 2, Over: 1, Shadow: 1})

	o := inMemory(t, plain)
	seen := &keys{}
	o.Stats = seen
	s := serve(t, o)
	s.ask(request("unknown", "k=v"))
	_, _ = s.client.ShouldRateLimit(t.Context(), request("", "k=v"))
	if seen.unknown != 1 || seen.failed != 1 || seen.calls != 2 {
		t.Errorf("%+v", seen)
	}
}
