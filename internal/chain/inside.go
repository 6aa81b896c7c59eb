package chain

import (
	"context"
	"time"

	"tidegate.dev/tidegate"
)

// Shared is a Backend that the instances of a fleet share, and by which they know of each
// other.
type Shared interface {
	Backend

	// Beat says that id is there, and will be for ttl unless it says so again. It
	// returns how many are, this one included.
	Beat(ctx context.Context, id string, ttl time.Duration) (live int, err error)
	// Leave says that id is there no longer.
	Leave(ctx context.Context, id string) error
	// Trouble is why the backend cannot be used, as far as connections tell; nil
	// otherwise.
	Trouble() error
}

// insides find what is inside a store.
var insides []func(tidegate.Store) (Shared, bool)

// Inside is called by a package whose stores have abilities that are for layers and not for
// its users, when the program starts: find returns them for a store of that package.
func Inside(find func(tidegate.Store) (Shared, bool)) { insides = append(insides, find) }

// SharedBy is what is inside a store.
func SharedBy(s tidegate.Store) (Shared, bool) {
	for _, find := range insides {
		if found, ok := find(s); ok {
			return found, true
		}
	}
	return nil, false
}
