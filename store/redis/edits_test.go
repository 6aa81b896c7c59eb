package redis

import (
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/edits"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// A thousand edits of rule files of each kind, on two nodes that share their counters.
func TestThousandEdits(t *testing.T) {
	t.Parallel()
	server := testdep.Redis(t)
	edits.Run(t, 1000, func(t *testing.T, now func() time.Time) []tidegate.Store {
		c := Config{Addrs: []string{server.Socket}, pretend: now}
		s := openTest(t, c)
		return []tidegate.Store{s, beside(t, s, c)}
	})
}
