package split

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"tidegate.dev/tidegate/store/memory"
)

// HandOver writes what is counted to a file for a successor of this process. Without that,
// a restart would refill everybody.
func (s *Store) HandOver(file string) error {
	err := s.local.Snapshot(file)
	var text []byte
	if err == nil {
		now := s.now()
		handed := s.history.handed(now)
		handed.Resets = s.handedResets(now)
		text, err = json.Marshal(handed)
	}
	if err == nil {
		err = os.WriteFile(file+ofMembers, text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("hand over what is counted of shares: %w", err)
	}
	return nil
}

// ofMembers is the suffix of a file beside that of HandOver: how many instances there were and when, by which
// windows that have begun are divided, and which counters were reset.
const ofMembers = ".members"

// TakeOver reads the file of a predecessor, if it exists, and removes it. Call it before the
// first request. Predecessors without shares write no file.
func (s *Store) TakeOver(file string) error {
	defer os.Remove(file)
	defer os.Remove(file + ofMembers)
	local, err := memory.Restore(file, memory.Config{MaxBytes: s.o.LocalBytes, Now: s.o.Now})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("take over what was counted of shares: %w", err)
	}
	s.local = local
	s.history.heir.Store(true)
	var h handedHistory
	text, err := os.ReadFile(file + ofMembers)
	if err == nil {
		err = json.Unmarshal(text, &h)
	}
	switch {
	case err == nil:
		now := s.now()
		s.history.takeOver(h, now)
		s.takeOverResets(h.Resets, now)
	case !errors.Is(err, fs.ErrNotExist): // else it is of an earlier version
		return fmt.Errorf("take over how shares were divided: %w", err)
	}
	s.Look()
	return nil
}
