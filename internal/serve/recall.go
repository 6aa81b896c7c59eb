package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"tidegate.dev/tidegate/internal/lang/bounded"
	"tidegate.dev/tidegate/rules"
)

// rulesSuffix is the suffix of the file, next to the file with the counters, that says which limits
// they belong to, so that a process with other rules gives nobody a fresh allowance.
const rulesSuffix = ".rules"

// remember writes which counters the rules in force use, next to the counters in file. Without it,
// counters of changed limits start empty. With too many limits, it writes nothing.
func (s *server) remember(file string) error {
	if s.rules == nil {
		return nil
	}
	data, err := s.rules.live.Remember()
	if errors.Is(err, rules.ErrTooManyLimits) {
		return nil
	}
	if err == nil {
		err = os.WriteFile(file+rulesSuffix+newSnapshot, data, 0o600)
	}
	if err == nil {
		err = os.Rename(file+rulesSuffix+newSnapshot, file+rulesSuffix)
	}
	if err != nil {
		return fmt.Errorf("write the rules beside the counters: %w", err)
	}
	return nil
}

// recall reads what remember wrote next to the counters in file, and logs which counters do not
// simply continue. "" means that there is no file.
func (s *server) recall(file string) {
	if file == "" || s.rules == nil {
		return
	}
	data, err := bounded.Files(maxRules)(file + rulesSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var changes []rules.Change
	if err == nil {
		changes, err = s.rules.live.Recall(data)
	}
	if err != nil {
		s.log.Warn("the previous rules are not known: counters of limits that have changed start empty", "err", err)
		return
	}
	for _, c := range changes[:min(len(changes), maxChanges)] {
		s.log.Info("counters of a limit do not simply continue", "change", c.String())
	}
	if more := len(changes) - maxChanges; more > 0 {
		s.log.Info("counters of more limits do not simply continue", "limits", more)
	}
}

// maxChanges is how many changes of counters are logged one by one, as by a reload.
const maxChanges = 20

// maxRules is the maximum length of the file of remember.
const maxRules = 64 << 20
