package fleet

import "tidegate.dev/tidegate"

// Unqueued is the stack without the line: in that, turns are waited for, and the suite
// books them days ahead.
func (s *Store) Unqueued() tidegate.Store { return s.node }
