package cli

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate/store/memory"
)

// A shortage is told once when it begins and once when it is over, and health says
// so in between.
func TestShortageIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var st memory.Stats
		var log bytes.Buffer
		s := watchShortage(func() memory.Stats { return st }, 1<<20, slog.New(slog.NewTextHandler(&log, nil)))
		f := func(pass time.Duration, status, why string, warned, over int) {
			t.Helper()
			time.Sleep(pass)
			synctest.Wait()
			h := s.health()
			if h.Status != status || !strings.Contains(h.Why, why) || status == full && h.Since.IsZero() {
				t.Errorf("health is %+v, want %s: %s", h, status, why)
			}
			if w, o := strings.Count(log.String(), "is used up"), strings.Count(log.String(), "suffices again"); w != warned || o != over {
				t.Errorf("warned %d times, over %d times, want %d and %d:\n%s", w, o, warned, over, &log)
			}
		}
		f(time.Minute, "ok", "", 0, 0)
		st.Forgotten += 3
		f(2*time.Second, full, "3 keys with used events", 1, 0)
		st.Forgotten += 4
		f(30*time.Second, full, "7 keys with used events", 1, 0)
		st.RefusedFull++
		f(50*time.Second, full, "1 requests found no room", 1, 0)
		f(2*time.Minute, "ok", "", 1, 1)
		st.RefusedFull++
		f(2*time.Second, full, "0 keys with used events", 2, 1)
		s.close()
	})
}
