package source

import (
	"path/filepath"
	"testing"
	"time"
)

// Reload reads the files though nothing tells that they have changed; and bad ones leave what
// was in force, each time.
func TestReload(t *testing.T) {
	t.Parallel()
	deaf := pace{poll: time.Hour, quiet: time.Hour, most: time.Hour, settle: time.Hour, badTimeout: time.Hour, silent: true}
	name := filepath.Join(t.TempDir(), "rules.yaml")
	write(t, name, limit(1))
	w := start(t, name, deaf)
	write(t, name, limit(2))
	w.Reload()
	w.wants(2)
	for i := range 3 {
		write(t, name, "rules: [")
		w.Reload()
		w.wantsFailure(2)
		w.wantsCounts(1, i+1)
	}
	write(t, name, limit(2))
	w.Reload()
	w.wants(2)
	w.wantsCounts(1, 3) // the rules are those in force
}
