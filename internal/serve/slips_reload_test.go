//go:build unix

package serve

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// A slip names the rules in force, whatever is refused while they are replaced.
func TestSlipsDuringReloads(t *testing.T) {
	text := func(n int) string {
		return fmt.Sprintf("version: 1\nrules: [{ name: api, per: ip, limits: %d/hour }]\n", n)
	}
	s := openServer(t, map[string]string{"rules.yaml": text(1)})
	sealed := func() string {
		is, err := s.slips.sealer().Open(s.slip(nil, &tidegate.Decision{}))
		if err != nil {
			t.Fatal(err)
		}
		return is.Rules
	}
	var enough atomic.Bool
	var refused sync.WaitGroup
	defer refused.Wait()
	defer enough.Store(true)
	for range 2 {
		refused.Go(func() {
			for !enough.Load() {
				s.slip(nil, &tidegate.Decision{})
			}
		})
	}
	for n := range 30 {
		was := s.rules.Status().Hash
		if err := os.WriteFile(filepath.Join(s.config.Rules[0], "rules.yaml"), []byte(text(n+2)), 0o600); err != nil {
			t.Fatal(err)
		}
		s.rules.Reload()
		testdep.Eventually(t, "the rules are reloaded", func() bool { return s.rules.Status().Hash != was })
		if got, is := sealed(), s.rules.Status().Hash; got == "" || !strings.HasPrefix(is, got) {
			t.Errorf("reload %d: a slip names %q, and in force is %s", n, got, is)
		}
	}
}
