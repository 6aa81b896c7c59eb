//go:build !unix

package apikey

import (
	"errors"
	"io/fs"
	"os"
	"time"
)

// lock waits until there is no file of that name, for ten seconds.
func lock(name string) (unlock func(), err error) {
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		if err == nil {
			return func() { _ = f.Close(); _ = os.Remove(name) }, nil
		}
		if !errors.Is(err, fs.ErrExist) || time.Now().After(end) {
			return nil, err
		}
	}
}
