package chain

import (
	"context"

	"tidegate.dev/tidegate"
)

// Shared is a Backend that the instances of a fleet share and through which they count
// each other.
type Shared interface {
	Backend

	// Beat registers an instance as live. With a Roster and an error, some servers have
	// not answered and the others have.
	Beat(ctx context.Context, h Heartbeat) (Roster, error)
	// Leave removes the instance id at once.
	Leave(ctx context.Context, id string) error
	// Entries lists the instances that are live. With entries and an error, some servers
	// have not answered and the others have.
	Entries(ctx context.Context) ([]Entry, error)
	// Trouble returns why the backend cannot be reached, judged by its connections
	// alone; nil means that nothing is known to be wrong.
	Trouble() error
	// Table returns where small rows are shared; nil if nowhere.
	Table() Table
	// Shelf returns where the last versions of a large text of that name are kept; nil if
	// nowhere.
	Shelf(name string) Shelf
	// Tallies returns where instances add up what they have counted; nil if nowhere.
	Tallies() Tallies
	// Regions returns what the store does for a fleet in several regions; nil if nothing.
	Regions() Regions
}

// sharedFinders are the functions given to RegisterShared.
var sharedFinders []func(tidegate.Store) (Shared, bool)

// RegisterShared adds a function that returns the Shared behind a store, and false for
// stores of other packages. A store package calls it in an init function, so that it need
// not export the methods that only layers call.
func RegisterShared(find func(tidegate.Store) (Shared, bool)) {
	sharedFinders = append(sharedFinders, find)
}

// AsShared returns the Shared behind s, and false if the package of s registered none.
func AsShared(s tidegate.Store) (Shared, bool) {
	for _, find := range sharedFinders {
		if found, ok := find(s); ok {
			return found, true
		}
	}
	return nil, false
}
