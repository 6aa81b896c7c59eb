package redis

import (
	"time"

	"tidegate.dev/tidegate"
)

// Server is for package fleet: the number of the server that a counter lives on. It is 0 if
// there is one server, and until the topology is known. A master keeps its number as long
// as it has slots.
func (s fleetStore) Server(l *tidegate.Limit, key string) int {
	if !s.apart() || l == nil {
		return 0
	}
	var room [160]byte
	if m := s.owner(slotOf(appendTag(room[:0], l.Scope, key)), time.Now()); m != nil {
		return m.number
	}
	return 0
}

// Servers is for package fleet: the names of all servers, by number. The slice is read-only,
// and is another one whenever counters have moved.
func (s fleetStore) Servers() []string {
	if t := s.topology.current.Load(); t != nil {
		return t.names
	}
	return singleName
}

var singleName = []string{"Redis"}
