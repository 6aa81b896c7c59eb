// Package bounded reads files that an operator names without trusting them. A file larger than
// memory, an endless device or a pipe without a writer is an error; it neither crashes nor blocks
// the process.
//
// Start with [ReadFile]. It is for files that are read as a whole.
package bounded

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// PEM is the maximum length of a file of certificates or keys.
const PEM = 1 << 20

// pipeTimeout is how long a pipe is read.
const pipeTimeout = 5 * time.Second

// A TooLargeError is the cause when a file exceeds its maximum length.
type TooLargeError struct{ Max int64 }

func (e *TooLargeError) Error() string { return "is larger than " + size(e.Max) }

// size returns a number of bytes for people.
func size(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

var (
	errFolder = syscall.EISDIR
	errSilent = errors.New("is a pipe that nobody writes to")
	errDevice = errors.New("is a device, and a file is expected")
)

// ReadFile returns the content of a file of at most max bytes. A pipe is read for five seconds at
// most, and must not be empty; a device is not read at all. Errors are *fs.PathError.
func ReadFile(name string, max int64) ([]byte, error) {
	// Opening a pipe would wait for a writer.
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := read(f, max)
	if err != nil {
		if _, told := err.(*fs.PathError); !told {
			err = &fs.PathError{Op: "read", Path: name, Err: err}
		}
		return nil, err
	}
	return text, nil
}

func read(f *os.File, max int64) ([]byte, error) {
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errFolder
	case info.Mode().IsRegular():
		if info.Size() > max {
			return nil, &TooLargeError{max}
		}
	case info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) == 0:
		return nil, errDevice
	default:
		return readPipe(f, max)
	}
	return All(f, max)
}

// readPipe treats an empty pipe as one without a writer, not as an empty file: a list of banned
// callers must not be empty by accident.
func readPipe(f *os.File, max int64) ([]byte, error) {
	if err := f.SetReadDeadline(time.Now().Add(pipeTimeout)); err != nil {
		return nil, err
	}
	text, err := All(f, max)
	if err == nil && len(text) == 0 {
		return nil, errSilent
	}
	return text, err
}

// All reads r to its end, if that is at most max bytes.
func All(r io.Reader, max int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, max+1)) // a file may have grown since
	switch {
	case err != nil:
		return nil, err
	case int64(len(text)) > max:
		return nil, &TooLargeError{max}
	}
	return text, nil
}

// Files returns ReadFile for files of at most max bytes each.
func Files(max int64) func(name string) ([]byte, error) {
	return func(name string) ([]byte, error) { return ReadFile(name, max) }
}

// KeyPair is tls.LoadX509KeyPair.
func KeyPair(cert, key string) (tls.Certificate, error) {
	certText, err := ReadFile(cert, PEM)
	if err != nil {
		return tls.Certificate{}, err
	}
	keyText, err := ReadFile(key, PEM)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(certText, keyText)
}
