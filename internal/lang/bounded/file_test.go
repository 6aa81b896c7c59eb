//go:build unix

package bounded

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// What is not a file of that size at most is an error, soon and without the memory
// to hold it.
func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	const max = 1000
	for _, n := range []int{0, 1, max - 1, max, max + 1, 2 * max} {
		must(os.WriteFile(in("file"), bytes.Repeat([]byte("x"), n), 0o600))
		text, err := ReadFile(in("file"), max)
		var large *TooLargeError
		if n <= max && (err != nil || len(text) != n) || n > max && !errors.As(err, &large) {
			t.Errorf("of %d bytes: %d, %v", n, len(text), err)
		}
	}
	f := func(name string, want error) {
		t.Helper()
		start := time.Now()
		text, err := ReadFile(name, max)
		var path *fs.PathError
		if err == nil || !errors.As(err, &path) || text != nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %d bytes, %v, want %v", name, len(text), err, want)
		}
		if took := time.Since(start); took > time.Minute { // an endless file, or a pipe without an end
			t.Errorf("%s: %s", name, took)
		}
	}
	sparse, err := os.Create(in("sparse"))
	must(err)
	must(sparse.Truncate(20 << 30))
	must(sparse.Close())
	f(in("sparse"), nil)
	f(dir, errFolder)
	f(in("none"), fs.ErrNotExist)
	f("/dev/zero", errDevice)
	f("/dev/null", errDevice)
	must(syscall.Mkfifo(in("pipe"), 0o600))
	f(in("pipe"), errSilent)
	// Somebody has it open, and says nothing.
	writer, err := os.OpenFile(in("pipe"), os.O_RDWR, 0)
	must(err)
	f(in("pipe"), os.ErrDeadlineExceeded)
	reader, err := os.OpenFile(in("pipe"), os.O_RDONLY|syscall.O_NONBLOCK, 0) // keeps what was said
	must(err)
	defer reader.Close()
	_, err = writer.Write([]byte("text"))
	must(err)
	must(writer.Close())
	if text, err := ReadFile(in("pipe"), max); string(text) != "text" {
		t.Errorf("a pipe that says something: %q, %v", text, err)
	}
	writer, err = os.OpenFile(in("pipe"), os.O_RDWR, 0)
	must(err)
	defer writer.Close()
	_, err = writer.Write(bytes.Repeat([]byte("x"), max+1))
	must(err)
	f(in("pipe"), nil)
}
