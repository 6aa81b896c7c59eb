// Package durable replaces files so that what was written is there after the machine
// stops: the new content or the old one, never a part of either.
//
// Start with [WriteFile]. It is for files that are replaced whole, not for logs.
package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// WriteFile replaces a file, or makes it. Readers see the old content or the new one. A
// symbolic link stays one: what it points to is replaced. The owner and the group of the old
// file are kept if this process may; a mode that lets the group read is narrowed if it may
// not. Temporary files of a process that was killed are hidden, as .NAME.new-123.
//
// On an error the old file is as it was, unless only syncing the folder failed.
func WriteFile(name string, data []byte, mode fs.FileMode) error {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real
	}
	dir := filepath.Dir(name)
	f, err := os.CreateTemp(dir, "."+filepath.Base(name)+".new-*") // 0600
	if err != nil {
		return err
	}
	err = fill(f, name, data, mode.Perm())
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	return SyncDir(dir)
}

// fill gives a new file what it needs before it replaces the one called name.
func fill(f *os.File, name string, data []byte, mode fs.FileMode) error {
	if old, err := os.Stat(name); err == nil && !keepOwner(f, old) {
		mode &= 0o700 // the group of this process is not the one that could read
	}
	if mode != 0o600 {
		if err := f.Chmod(mode); err != nil {
			return err
		}
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	return flush(f)
}

// SyncDir makes the names in a folder last, after a file was made or renamed in it. Where
// folders cannot be synced it does nothing.
func SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := flush(d); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}

// flush and rename are variables so that a test sees their order.
var (
	flush  = (*os.File).Sync
	rename = os.Rename
)
