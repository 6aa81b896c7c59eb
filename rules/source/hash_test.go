package source_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/rules/source"
)

// Hash changes with the Set of Live: whenever it is called, nobody sees the hash of another Set.
func TestHashChangesWithTheSet(t *testing.T) {
	name := filepath.Join(t.TempDir(), "rules.yaml")
	write := func(n int) {
		t.Helper()
		if err := os.WriteFile(name, fmt.Appendf(nil, "version: 1\nrules: [{ name: api, per: ip, limits: %d/hour }]\n", n), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(1)
	reloaded := make(chan struct{}, 1)
	w, err := source.Watch(t.Context(), name, source.Options{OnReload: func(_, _ *rules.Set) { reloaded <- struct{}{} }})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ctx, enough := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	seen := make([]map[*rules.Set]map[string]bool, 2)
	for i := range seen {
		seen[i] = make(map[*rules.Set]map[string]bool)
		callers.Go(func() {
			for ctx.Err() == nil {
				set := w.Live().Set()
				hash := w.Hash()
				if w.Live().Set() != set {
					continue // it may be of either
				}
				if seen[i][set] == nil {
					seen[i][set] = make(map[string]bool)
				}
				seen[i][set][hash] = true
			}
		})
	}
	want := map[*rules.Set]string{w.Live().Set(): w.Status().Hash}
	for n := range 50 {
		write(n + 2)
		w.Reload()
		select {
		case <-reloaded:
		case <-time.After(time.Minute):
			t.Fatal("not reloaded")
		}
		want[w.Live().Set()] = w.Status().Hash
	}
	enough()
	callers.Wait()
	for _, all := range seen {
		for set, hashes := range all {
			if len(hashes) != 1 || !hashes[want[set]] {
				t.Errorf("the set of %s has the hashes %v", want[set], hashes)
			}
		}
	}
}
