package fleet

import "tidegate.dev/tidegate/internal/chain/queue"

// TurnsBy has turns come by another clock: the suite books them days ahead.
func (s *Store) TurnsBy(c queue.Clock) { s.queue = queue.NewBy(s.queue.Backend, c) }
