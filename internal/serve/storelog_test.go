package serve

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/fleet"
)

// The log has a line per change and master, whatever else is told meanwhile.
func TestLogOfMasters(t *testing.T) {
	var text strings.Builder
	s := storeLog{log: slog.New(slog.NewTextHandler(&text, nil))}
	why := errors.New("connection refused")
	is := func(a, b, c string) fleet.Health {
		h := fleet.Health{Status: fleet.Partial, Why: why, Since: time.Now()}
		well := 0
		for i, status := range []string{a, b, c} {
			m := fleet.Server{Name: string(rune('a' + i)), Status: status, Since: time.Now()}
			if status != fleet.OK {
				m.Why = why
			} else {
				well++
			}
			h.Servers = append(h.Servers, m)
		}
		switch well {
		case 3:
			h.Status, h.Why = fleet.OK, nil
		case 0:
			h.Status = fleet.Degraded
		}
		return h
	}
	const ok, degraded, recovering = fleet.OK, fleet.Degraded, fleet.Recovering
	f := func(h fleet.Health, want ...string) {
		t.Helper()
		text.Reset()
		s.stateChanged(h)
		lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
		if text.Len() == 0 {
			lines = nil
		}
		if len(lines) != len(want) {
			t.Errorf("%q, want %q", lines, want)
			return
		}
		for i := range lines {
			if !strings.Contains(lines[i], want[i]) {
				t.Errorf("%q, want %q", lines[i], want[i])
			}
		}
	}
	f(is(ok, degraded, ok), "server=b")
	f(is(ok, degraded, ok))
	f(is(ok, recovering, ok))
	f(is(ok, degraded, degraded), "server=c")
	f(is(ok, ok, degraded), "answers again")
	f(is(ok, ok, ok), "answers again")
	f(is(degraded, degraded, degraded), "the store does not answer")
	f(is(recovering, recovering, recovering))
	f(is(ok, ok, ok), "the store answers again")
	f(is(degraded, degraded, degraded), "the store does not answer")
	f(is(ok, degraded, ok), "server=b", "a part of the store answers again")
	f(is(ok, ok, ok), "a server of the store answers again")
	f(is(degraded, degraded, degraded), "the store does not answer")
	partly := is(ok, ok, ok) // but a rule cannot be asked about
	partly.Status = fleet.Partial
	f(partly, "the store answers again")
}
