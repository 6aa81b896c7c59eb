package guard

import (
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
	"tidegate.dev/tidegate/store/storetest"
)

// patient has a deadline that a busy machine does not miss.
const patient = time.Minute

func TestConformance(t *testing.T) {
	for name, inline := range map[string]bool{"goroutine": false, "inline": true} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T, now func() time.Time) tidegate.Store {
				g := New(memory.Open(memory.Config{Now: now}), Options{Deadline: patient, Inline: inline})
				t.Cleanup(func() {
					if h := g.Health(); h.State != OK || h.Errors+h.Timeouts+h.Busy != 0 || h.Allowed+h.Denied+h.Admitted+h.Refused != 0 {
						t.Errorf("a store that works was not left to work: %+v", h)
					}
					_ = g.Close()
				})
				return g
			})
		})
	}
}
