package source

import (
	"path/filepath"
	"slices"
	"testing"
)

// Rules are in force whole or not at all, at the start and at every reload, and
// whoever asks for the status is told which.
func TestTrap26BadRulesAreNeverReady(t *testing.T) {
	good := rule("one", 1) + "  - { name: two, per: everyone, limits: 2/hour }\n"
	half := rule("one", 10) + "  - { name: two, per: everyone, limit: 20/hour }\n"
	bothModes(t, func(t *testing.T, p pace) {
		file := filepath.Join(t.TempDir(), "rules.yaml")
		write(t, file, half)
		if w, err := watch(t.Context(), file, Options{}, p); err == nil || w != nil {
			t.Fatalf("Watch of a bad file: %v, %v", w, err)
		}
		replace(t, file, good)
		w := start(t, file, p)
		w.wants(3)
		ready := w.Status()
		if ready.LastError != "" || ready.Failed != 0 || ready.Hash == "" {
			t.Errorf("%+v", ready)
		}
		replace(t, file, half)
		s := w.wantsFailure(3) // and not 12, nor 10
		if s.Hash != ready.Hash || s.Reloads != 0 || s.Failed != 1 || s.Since.IsZero() {
			t.Errorf("%+v", s)
		}
		if len(s.Problems) != 1 || s.Problems[0].Line != 4 || !slices.Equal(w.Live().Set().Rules(), []string{"one", "two"}) {
			t.Errorf("%+v, in force %q", s.Problems, w.Live().Set().Rules())
		}
	})
}
