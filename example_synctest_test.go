package tidegate_test

import (
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

func TestPollerForADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := tidegate.New(memory.New(), tidegate.PerMinute(100), tidegate.PerHour(1000))

		served := 0
		for end := time.Now().Add(24 * time.Hour); time.Now().Before(end); {
			if lim.Allow(t.Context(), "poller").OK {
				served++
			}
			time.Sleep(500 * time.Millisecond) // 120 a minute: more than it may
		}
		if served != 24*1000 {
			t.Errorf("%d requests were served in a day, want 1000 an hour", served)
		}
	})
}
