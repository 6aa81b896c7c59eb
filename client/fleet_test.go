package client

import (
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// In Redis, too, the longest stop counts, once, for every instance.
func TestStopInRedis(t *testing.T) {
	redis := testdep.Redis(t)
	instance := func() *Provider {
		store, err := fleet.Open("redis://"+redis.Addr, fleet.Options{Deadline: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		return mustProvider(t, ProviderOptions{Store: store, Limits: []*tidegate.Limit{tidegate.PerSecond(1)}})
	}
	a, b := instance(), instance()
	if got := b.stopped(t.Context(), "k"); got != 0 {
		t.Errorf("stopped for %s before anybody was refused", got)
	}
	began, longest := time.Now(), time.Duration(0)
	for i, d := range []time.Duration{time.Minute, time.Second, time.Hour, 20 * time.Minute, time.Hour, time.Hour, maxStop, maxStop, time.Minute} {
		p := a
		if i%2 == 1 {
			p = b
		}
		if err := p.stopFor(t.Context(), "k", d); err != nil {
			t.Fatal(err)
		}
		longest = max(longest, d)
		for _, p := range []*Provider{instance(), instance()} { // who remember nothing
			got := p.stopped(t.Context(), "k")
			if got > longest || got < longest-time.Since(began) {
				t.Errorf("after stops of up to %s: stopped for %s", longest, got)
			}
		}
	}
	if err := a.stopFor(t.Context(), "short", stopUnit); err != nil {
		t.Fatal(err)
	}
	for b.stopped(t.Context(), "short") > 0 {
	}
	for _, p := range []*Provider{b, instance()} {
		if p.stopped(t.Context(), "short"); p.turns.strict.IsZero() {
			t.Error("after the stop, an instance does not know that others were refused")
		}
	}
	fresh := instance()
	if got := fresh.stopped(t.Context(), "other"); got != 0 || !fresh.turns.strict.IsZero() {
		t.Errorf("another key is stopped for %s", got)
	}
}
