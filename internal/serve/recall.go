package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"tidegate.dev/tidegate/internal/lang/bounded"
	"tidegate.dev/tidegate/rules"
)

// ofRules is added to the name of the file of counters for the file with the rules that made
// them, so that a process with other rules refills nobody.
const ofRules = ".rules"

// remember writes where the rules in force count, beside the counters in file. Without it only
// the counters of limits that have changed start empty.
func (s *server) remember(file string) error {
	if s.rules == nil {
		return nil
	}
	data, err := s.rules.live.Remember()
	if errors.Is(err, rules.ErrTooManyLimits) {
		return nil
	}
	if err == nil {
		err = os.WriteFile(file+ofRules+newSnapshot, data, 0o600)
	}
	if err == nil {
		err = os.Rename(file+ofRules+newSnapshot, file+ofRules)
	}
	if err != nil {
		return fmt.Errorf("write the rules beside the counters: %w", err)
	}
	return nil
}

// recall reads what was written beside the counters in file; "" means there are none.
func (s *server) recall(file string) {
	if file == "" || s.rules == nil {
		return
	}
	data, err := bounded.Files(maxRules)(file + ofRules)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var changes []rules.Change
	if err == nil {
		changes, err = s.rules.live.Recall(data)
	}
	if err != nil {
		s.log.Warn("the rules before are not known: counters of limits that have changed start empty", "err", err)
		return
	}
	for _, c := range changes[:min(len(changes), 20)] {
		s.log.Info("counters of a limit do not just go on", "change", c.String(), "limits", len(changes))
	}
}

// maxRules is how long that file may be.
const maxRules = 64 << 20
