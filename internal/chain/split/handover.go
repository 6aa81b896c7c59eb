package split

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"tidegate.dev/tidegate/store/memory"
)

// HandOver writes what is counted to a file for a successor of this process. Without that,
// a restart would refill everybody.
func (s *Store) HandOver(file string) error {
	if err := s.local.Snapshot(file); err != nil {
		return fmt.Errorf("hand over what is counted of shares: %w", err)
	}
	return nil
}

// TakeOver reads the file of a predecessor, if it exists, and removes it. Call it before the
// first request. Predecessors without shares write no file.
func (s *Store) TakeOver(file string) error {
	defer os.Remove(file)
	local, err := memory.Restore(file, memory.Config{MaxBytes: s.o.LocalBytes, Now: s.o.Now})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("take over what was counted of shares: %w", err)
	}
	s.local = local
	s.history.heir.Store(true)
	s.Look()
	return nil
}
