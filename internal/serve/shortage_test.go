package serve

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate/store/memory"
)

// A shortage is told once when it begins and once when it is over, and health says
// so in between.
func TestShortageIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var st memory.Stats
		var log bytes.Buffer // slog has a lock of its own, which a reader does not
		s := watchShortage(func() memory.Stats { mu.Lock(); defer mu.Unlock(); return st }, 1<<20, slog.New(slog.NewTextHandler(lockedWriter{&mu, &log}, nil)))
		change := func(forgotten, refused int64) {
			mu.Lock()
			defer mu.Unlock()
			st.Forgotten += forgotten
			st.RefusedFull += refused
		}
		f := func(pass time.Duration, status, why string, warned, over int) {
			t.Helper()
			time.Sleep(pass)
			synctest.Wait()
			h := s.health()
			if h.Status != status || !strings.Contains(h.Why, why) || status == full && h.Since.IsZero() {
				t.Errorf("health is %+v, want %s: %s", h, status, why)
			}
			mu.Lock()
			defer mu.Unlock()
			if w, o := strings.Count(log.String(), "is used up"), strings.Count(log.String(), "suffices again"); w != warned || o != over {
				t.Errorf("warned %d times, over %d times, want %d and %d:\n%s", w, o, warned, over, &log)
			}
		}
		f(time.Minute, "ok", "", 0, 0)
		change(3, 0)
		f(2*time.Second, full, "3 keys with used events", 1, 0)
		change(4, 0)
		f(30*time.Second, full, "7 keys with used events", 1, 0)
		change(0, 1)
		f(50*time.Second, full, "1 requests found no room", 1, 0)
		f(2*time.Minute, "ok", "", 1, 1)
		change(0, 1)
		f(2*time.Second, full, "0 keys with used events", 2, 1)
		s.close()
	})
}

type lockedWriter struct {
	mu *sync.Mutex
	to *bytes.Buffer
}

func (w lockedWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(b)
}
