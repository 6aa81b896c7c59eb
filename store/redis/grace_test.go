package redis

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/gracetest"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// Two nodes that take turns, and are closed and opened again at any moment, decide about limits that give way
// for a while as one does.
func TestGraceOnNodesThatRestart(t *testing.T) {
	t.Parallel()
	server := testdep.Redis(t)
	gracetest.Run(t, func(t *testing.T, r *rand.Rand, now func() time.Time) func() tidegate.Store {
		config := Config{
			Addrs: []string{server.Socket}, Prefix: fmt.Sprint("grace", opened.Add(1)),
			Deadline: patient, GoneAfter: patient, pretend: now,
		}
		var nodes [2]*Store
		t.Cleanup(func() {
			for _, s := range nodes {
				if s != nil {
					_ = s.Close()
				}
			}
		})
		return func() tidegate.Store {
			s := &nodes[r.IntN(len(nodes))]
			if *s != nil && r.IntN(5) > 0 {
				return *s
			}
			if *s != nil {
				if err := (*s).Close(); err != nil {
					t.Fatal(err)
				}
			}
			var err error
			if *s, err = Open(config); err != nil {
				t.Fatal(err)
			}
			return *s
		}
	})
}
