//go:build unix

package durable

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// remains are the files of a folder.
func remains(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// A file has its content and mode, whatever was there before, and nothing else is left.
func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	for _, mode := range []fs.FileMode{0o600, 0o640, 0o644, 0o400} {
		for _, n := range []int{0, 1, 4096, 1 << 20} {
			want := bytes.Repeat([]byte("x"), n)
			if err := WriteFile(name, want, mode); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(name)
			info, _ := os.Stat(name)
			if err != nil || !bytes.Equal(got, want) || info.Mode() != mode {
				t.Errorf("%d bytes, mode %s, %v; want %d with %s", len(got), info.Mode(), err, n, mode)
			}
		}
	}
	if got := remains(t, dir); !slices.Equal(got, []string{"file"}) {
		t.Errorf("left behind: %q", got)
	}
}

// The content is on disk before the name is, and the name before WriteFile returns.
func TestOrder(t *testing.T) {
	var steps []string
	defer func() { flush, rename = (*os.File).Sync, os.Rename }()
	flush = func(f *os.File) error {
		info, err := f.Stat()
		if err != nil || info.IsDir() {
			steps = append(steps, "sync the folder")
		} else if info.Size() == 3 {
			steps = append(steps, "sync the whole file")
		} else {
			steps = append(steps, "sync a part")
		}
		return f.Sync()
	}
	rename = func(from, to string) error {
		steps = append(steps, "rename")
		return os.Rename(from, to)
	}
	if err := WriteFile(filepath.Join(t.TempDir(), "file"), []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if want := []string{"sync the whole file", "rename", "sync the folder"}; !slices.Equal(steps, want) {
		t.Errorf("got %q, want %q", steps, want)
	}
}

// Whatever fails, the old file stays as it was and nothing is left.
func TestFailures(t *testing.T) {
	full := errors.New("no space left")
	defer func() { flush, rename = (*os.File).Sync, os.Rename }()
	f := func(what string, fail func()) {
		t.Helper()
		dir := t.TempDir()
		name := filepath.Join(dir, "file")
		if err := os.WriteFile(name, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		fail()
		err := WriteFile(name, []byte("new"), 0o600)
		flush, rename = (*os.File).Sync, os.Rename
		text, _ := os.ReadFile(name)
		if !errors.Is(err, full) || string(text) != "old" || len(remains(t, dir)) != 1 {
			t.Errorf("%s: %v, the file has %q, there are %q", what, err, text, remains(t, dir))
		}
	}
	f("sync", func() { flush = func(*os.File) error { return full } })
	f("rename", func() { rename = func(string, string) error { return full } })
	f("close", func() { flush = func(f *os.File) error { return errors.Join(full, f.Close()) } })

	if err := WriteFile(filepath.Join(t.TempDir(), "none", "file"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a folder: %v", err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(filepath.Join(dir, "folder"), nil, 0o600); err == nil || len(remains(t, dir)) != 1 {
		t.Errorf("in place of a folder: %v, there are %q", err, remains(t, dir))
	}
}

// Where folders cannot be synced, that is no failure; any other error of it is.
func TestSyncDir(t *testing.T) {
	defer func() { flush = (*os.File).Sync }()
	for err, wants := range map[error]bool{syscall.EINVAL: false, syscall.ENOTSUP: false, syscall.EIO: true} {
		flush = func(*os.File) error { return err }
		if got := SyncDir(t.TempDir()); (got != nil) != wants {
			t.Errorf("%v: got %v", err, got)
		}
	}
}

// A link stays a link, and what it points to is replaced, wherever that is.
func TestLink(t *testing.T) {
	there, here := t.TempDir(), t.TempDir()
	target, link := filepath.Join(there, "target"), filepath.Join(here, "link")
	if err := os.WriteFile(target, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(link, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(target)
	info, linkErr := os.Lstat(link)
	if err != nil || linkErr != nil || string(text) != "new" || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("%q, %v, %v, %v", text, err, info, linkErr)
	}
}

// A reader sees a whole file at any time, also while several write.
func TestReadersSeeWholeFiles(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := WriteFile(name, bytes.Repeat([]byte("a"), 50_000), 0o600); err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for _, letter := range []string{"a", "b"} {
		writers.Go(func() {
			for range 20 {
				if err := WriteFile(name, []byte(strings.Repeat(letter, 50_000)), 0o600); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	for more := true; more; {
		select {
		case <-done:
			more = false
		default:
		}
		text, err := os.ReadFile(name)
		if err != nil || len(text) != 50_000 || bytes.Count(text, text[:1]) != len(text) {
			t.Fatalf("%d bytes, %v", len(text), err)
		}
	}
}

// Root that replaces the file of another user leaves it theirs.
func TestOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		testdep.Missing(t, "root", "nobody else can give files away")
	}
	name := filepath.Join(t.TempDir(), "file")
	if err := WriteFile(name, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(name, 65534, 65534); err != nil {
		t.Skip("this system does not let root give files away")
	}
	if err := WriteFile(name, []byte("new"), 0o640); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if s := info.Sys().(*syscall.Stat_t); s.Uid != 65534 || s.Gid != 65534 || info.Mode() != 0o640 {
		t.Errorf("owner %d, group %d, mode %s", s.Uid, s.Gid, info.Mode())
	}
}
