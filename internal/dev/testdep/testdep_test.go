package testdep

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// witness stands in for a test and remembers how it ended.
type witness struct {
	testing.TB
	ended, told string
	helpers     int
}

func (w *witness) Helper()              { w.helpers++ }
func (w *witness) Name() string         { return "TestWitness" }
func (w *witness) Logf(string, ...any)  {}
func (w *witness) Skipf(string, ...any) { w.ended = "skipped"; runtime.Goexit() }
func (w *witness) Fatalf(format string, args ...any) {
	w.ended, w.told = "failed", fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// need runs Need as a test would and tells its path, how it ended and what it noted.
func need(t *testing.T, program, ci string) (path, ended, noted string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "skipped")
	t.Setenv("CI", ci)
	t.Setenv(skippedFile, file)
	w := &witness{TB: t, ended: "ran"}
	done := make(chan struct{})
	go func() {
		defer close(done)
		path = Need(w, program)
	}()
	<-done
	b, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return path, w.ended, string(b)
}

func TestNeedFindsTheProgram(t *testing.T) {
	path, ended, noted := need(t, "go", "true") // go test puts it on the PATH
	if !filepath.IsAbs(path) || ended != "ran" || noted != "" {
		t.Errorf("got %q, %s, noted %q; want its path, ran, nothing noted", path, ended, noted)
	}
}

func TestNeedSkipsVisibly(t *testing.T) {
	_, ended, noted := need(t, "no-such-program", "")
	if ended != "skipped" {
		t.Errorf("the test %s, want skipped", ended)
	}
	if !strings.HasPrefix(noted, "--- SKIP: TestWitness (no-such-program ") {
		t.Errorf("noted %q", noted)
	}
}

func TestNeedFailsInCI(t *testing.T) {
	_, ended, noted := need(t, "no-such-program", "true")
	if ended != "failed" || noted != "" {
		t.Errorf("the test %s, noted %q; want failed, nothing noted", ended, noted)
	}
}
