package xds

import (
	"testing"
	"time"
)

func TestBackoffGrowsWithJitter(t *testing.T) {
	differ := false
	for range 50 {
		b := backoff{least: 500 * time.Millisecond, most: 30 * time.Second}
		for i, most := range []time.Duration{500, 1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000} {
			most *= time.Millisecond
			d := b.next()
			if d < most/2 || d > most {
				t.Fatalf("wait %d: %v, want %v to %v", i, d, most/2, most)
			}
			differ = differ || d != most
		}
		b.reset()
		if d := b.next(); d > 500*time.Millisecond {
			t.Fatalf("after a reset: %v", d)
		}
	}
	if !differ {
		t.Error("no jitter")
	}
}
