package redis

import (
	"time"

	"tidegate.dev/tidegate"
)

// Server is for package fleet: the number of the server that a counter lives on. Outside of
// a cluster, and while nothing is known of it, that is 0. A master keeps its number as long
// as it has slots.
func (s inside) Server(l *tidegate.Limit, key string) int {
	if !s.cluster || l == nil {
		return 0
	}
	var room [160]byte
	if m := s.owner(slotOf(appendTag(room[:0], l.Scope, key)), time.Now()); m != nil {
		return m.number
	}
	return 0
}

// Servers is for package fleet: the names of all servers, by number. The slice, which nobody
// may change, is another one whenever counters have moved.
func (s inside) Servers() []string {
	if t := s.chart.now.Load(); t != nil {
		return t.names
	}
	return lone
}

var lone = []string{"Redis"}
