package lint_test

import (
	"os"
	"path/filepath"
	"testing"

	"tidegate.dev/tidegate/internal/lang/rulefile"
	"tidegate.dev/tidegate/rules/lint"
)

// No file makes a check fail, also none that does not load: what is there of it
// may be looked at.
func FuzzRun(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		src, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		file, problems := rulefile.Parse("rules.yaml", src, rulefile.Options{Now: longAgo, ReadFile: noFile})
		if file == nil {
			return
		}
		names := make(map[string]bool)
		for _, c := range lint.Checks {
			names[c.Name] = true
		}
		for _, p := range lint.Run(file, lint.Options{Now: now}) {
			if problems.HasErrors() {
				continue
			}
			if p.Message == "" || p.Hint == "" || !names[p.Check] || p.Line == 0 {
				t.Errorf("%+v says too little", p)
			}
		}
	})
}

func noFile(string) ([]byte, error) { return nil, os.ErrNotExist }
