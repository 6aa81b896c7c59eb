//go:build unix

package logsink

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A named pipe without a reader does not stop anybody, neither at the start.
func TestPipeWithoutReader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(path, Options{Bound: 256 << 10})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", 999)
	for range 2000 {
		line(s, "%s", text)
	}
	if s.Stats().Dropped == 0 {
		t.Error("two megabytes went somewhere")
	}
	s.Close(10 * time.Millisecond)
}
