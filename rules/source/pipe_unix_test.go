//go:build unix

package source

import (
	"syscall"
	"testing"
)

func makePipe(t *testing.T, name string) {
	t.Helper()
	do(t, syscall.Mkfifo(name, 0o644))
}
