package memory

import "tidegate.dev/tidegate"

var _ tidegate.LocalFallback = (*Store)(nil)

// LocalFallback implements [tidegate.LocalFallback]: the counters are in this process
// anyway.
func (s *Store) LocalFallback() {}
