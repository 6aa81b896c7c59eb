//go:build unix

package apikey

import (
	"io/fs"
	"os"
	"syscall"
)

// lock waits until nobody else holds the lock of that name. The kernel ends it with the
// process, so a killed one leaves nothing behind but an empty file.
func lock(name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, &fs.PathError{Op: "lock", Path: name, Err: err}
	}
	return func() { _ = f.Close() }, nil
}
