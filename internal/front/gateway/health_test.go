package gateway

import (
	"testing"
	"time"
)

// An upstream that fails is ejected for longer and longer, and one at a time
// may try it.
func TestHealth(t *testing.T) {
	h := &health{threshold: 3}
	now := time.Unix(1_000_000, 0)
	fail := func(n int) (pause time.Duration) {
		for range n {
			pause = max(pause, h.failed(now, false))
		}
		return pause
	}
	if pause := fail(2); pause != 0 || !h.usable(now) || !h.claim(now) {
		t.Fatalf("ejected for %s after two failures", pause)
	}
	if h.succeeded(now) {
		t.Error("it is back, and was never away")
	}
	if pause := fail(2); pause != 0 {
		t.Fatalf("ejected for %s: the failures were not in a row", pause)
	}
	for i, most := range []time.Duration{1, 2, 4, 8, 10, 10} {
		most *= time.Second
		pause := fail(1)
		if pause < most*3/4 || pause > most*5/4 {
			t.Errorf("the pause %d is %s, want %s ± 25 %%", i+1, pause, most)
		}
		if pause := fail(20); pause != 0 {
			t.Errorf("what was under way made a pause of %s", pause)
		}
		if h.usable(now) || h.claim(now) || h.retryAfter(now) != pause {
			t.Errorf("it is used in pause %d; back in %s, want %s", i+1, h.retryAfter(now), pause)
		}
		now = now.Add(pause)
		if !h.usable(now) || !h.claim(now) {
			t.Errorf("it is not tried after pause %d", i+1)
		}
		if h.usable(now) || h.claim(now) {
			t.Errorf("two try it after pause %d", i+1)
		}
	}
	if !h.succeeded(now) || !h.usable(now) || h.degraded.Load() {
		t.Error("it is not back")
	}
}

// A request on trial may end without a result: another may try then.
func TestTryThatLeaves(t *testing.T) {
	h := &health{threshold: 1}
	now := time.Unix(1_000_000, 0)
	now = now.Add(h.failed(now, false))
	if !h.claim(now) {
		t.Fatal("nobody may try")
	}
	if now = now.Add(firstEjection); !h.claim(now) {
		t.Error("nobody may try after the first left")
	}
}

func TestHealthByProbe(t *testing.T) {
	h := &health{threshold: 2, probeEvery: 5 * time.Second}
	now := time.Unix(1_000_000, 0)
	if h.probed(false) || !h.usable(now) {
		t.Error("down after one failed probe")
	}
	if !h.probed(false) || h.usable(now) || h.claim(now) || h.retryAfter(now) != 5*time.Second {
		t.Error("not down after two")
	}
	if h.probed(false) {
		t.Error("down again")
	}
	if h.succeeded(now) || h.usable(now) { // a request that was under way
		t.Error("up, before a probe")
	}
	if !h.probed(true) || !h.usable(now) {
		t.Error("not up after a good probe")
	}
	h.failed(now, false)
	h.failed(now, false)
	if h.usable(now) || !h.probed(true) || !h.usable(now) {
		t.Error("a good probe does not end an ejection")
	}
}
