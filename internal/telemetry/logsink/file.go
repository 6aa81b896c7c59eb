package logsink

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Open returns a Sink that appends to a file, and creates it if it does not exist.
func Open(path string, o Options) (*Sink, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	return start(f, path, o), nil
}

// open does not wait for the reader of a named pipe: it opens the pipe for reading, too.
func open(path string) (*os.File, error) {
	flags := os.O_APPEND | os.O_CREATE | os.O_WRONLY
	info, err := os.Stat(path)
	switch {
	case err == nil && info.Mode()&fs.ModeNamedPipe != 0:
		flags = os.O_RDWR | nonblocking
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("open the log: %w", err)
	}
	f, err := os.OpenFile(path, flags, 0o640)
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	return f, nil
}

// Reopen opens the file of the Sink again by its path, since the current one may have been renamed.
// On an error it keeps the current one. Lines written from now on go to the new file; it does not
// wait for earlier ones. A Sink without a file stays as it is.
func (s *Sink) Reopen() error {
	if s.path == "" {
		return nil
	}
	f, err := open(s.path)
	if err != nil {
		return err
	}
	s.mu.Lock()
	before := s.next
	s.next = f
	s.mu.Unlock()
	if before, ok := before.(*os.File); ok { // it was opened by an earlier Reopen and never used
		before.Close()
	}
	raise(s.wake)
	return nil
}
