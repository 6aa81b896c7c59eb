package auditlog

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"tidegate.dev/tidegate/internal/lang/durable"
)

// file is the current file of the log, and the rotated ones, which have the time as a suffix.
type file struct {
	path string
	max  int64
	kept int
	now  func() time.Time

	mu   sync.Mutex
	f    *os.File
	size int64
}

// setAside is the format of the time in the name of a rotated file; names sort by it.
const setAside = "20060102T150405.000000Z"

func openFile(path string, size int64, kept int, now func() time.Time) (*file, error) {
	f := &file{path: path, max: size, kept: kept, now: now}
	return f, f.open()
}

// open opens the file by its path. If its last line is incomplete, it begins a new line.
func (f *file) open() error {
	opened, err := os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	info, err := opened.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: f.path, Err: errors.New("it is not a regular file")}
	}
	size := int64(0)
	if err == nil {
		size, err = endLine(opened, info.Size())
	}
	if err == nil {
		err = durable.SyncDir(filepath.Dir(f.path))
	}
	if err != nil {
		_ = opened.Close()
		return err
	}
	if f.f != nil {
		_ = f.f.Close() // every line was synced
	}
	f.f, f.size = opened, size
	return nil
}

func endLine(f *os.File, size int64) (int64, error) {
	last := make([]byte, 1)
	if size == 0 {
		return 0, nil
	}
	if _, err := f.ReadAt(last, size-1); err != nil || last[0] == '\n' {
		return size, err
	}
	_, err := f.Write([]byte("\n"))
	return size + 1, err
}

// append writes a line and syncs it. If the file was renamed or removed, it creates a new one; if
// it is large enough, it rotates it first.
func (f *file) append(line []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.follow(); err != nil {
		return err
	}
	if f.size > 0 && f.size+int64(len(line))+1 > f.max {
		if err := f.rotate(); err != nil {
			return err
		}
	}
	n, err := f.f.Write(append(slices.Clip(line), '\n'))
	f.size += int64(n)
	if err == nil {
		err = f.f.Sync()
	} else if n > 0 {
		f.f = closed(f.f) // the next line reopens the file
	}
	return err
}

func closed(f *os.File) *os.File {
	_ = f.Close()
	return nil
}

// follow opens the file again if its path now refers to another file, or none. Another process may
// append to it at the same time, as during a hand-over.
func (f *file) follow() error {
	if f.f == nil {
		return f.open()
	}
	there, err := os.Stat(f.path)
	ours, ourErr := f.f.Stat()
	if err != nil || ourErr != nil || !os.SameFile(there, ours) {
		return f.open()
	}
	f.size = there.Size()
	return nil
}

// rotate renames the file, begins a new one, and removes the oldest if there are too many.
func (f *file) rotate() error {
	aside := f.path + "." + f.now().UTC().Format(setAside)
	if _, err := os.Lstat(aside); err == nil {
		return nil // twice in a microsecond: the next line tries again
	}
	// Another process may just have rotated it.
	if err := os.Rename(f.path, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := f.open(); err != nil {
		return err
	}
	old := f.aside()
	for _, name := range old[:max(0, len(old)-f.kept)] {
		_ = os.Remove(name) // the next rotation tries again
	}
	return nil
}

// aside returns the rotated files, oldest first.
func (f *file) aside() (all []string) {
	entries, _ := os.ReadDir(filepath.Dir(f.path))
	for _, e := range entries {
		when, ok := strings.CutPrefix(e.Name(), filepath.Base(f.path)+".")
		if _, err := time.Parse(setAside, when); ok && err == nil {
			all = append(all, filepath.Join(filepath.Dir(f.path), e.Name()))
		}
	}
	slices.Sort(all)
	return all
}

// tail returns the last n lines, including those of rotated files.
func (f *file) tail(n int) (lines [][]byte, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range slices.Backward(append(f.aside(), f.path)) {
		if len(lines) >= n {
			break
		}
		more, err := tailOf(name, n-len(lines))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		lines = append(lines, more...)
	}
	return lines, nil
}

// tailOf returns the last n lines of a file, which it reads from the end.
func tailOf(name string, n int) (lines [][]byte, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	at, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	var rest []byte // it may begin in the block before
	for at > 0 && bytes.Count(rest, []byte("\n")) <= n {
		block := make([]byte, min(at, 64<<10))
		at -= int64(len(block))
		if _, err := f.ReadAt(block, at); err != nil {
			return nil, err
		}
		rest = append(block, rest...)
	}
	for _, line := range slices.Backward(bytes.Split(rest, []byte("\n"))) {
		if len(line) > 0 && len(lines) < n {
			lines = append(lines, line)
		}
	}
	return lines, nil
}

func (f *file) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.f == nil {
		return nil
	}
	err := f.f.Close()
	f.f = nil
	return err
}
