package chain

import (
	"context"

	"tidegate.dev/tidegate"
)

// Shared is a Backend that the instances of a fleet share, and by which each knows how many
// there are.
type Shared interface {
	Backend

	// Beat registers an instance as live. It may return a Roster together with an error: then
	// only some servers have answered.
	Beat(ctx context.Context, h Heartbeat) (Roster, error)
	// Leave removes the instance id at once.
	Leave(ctx context.Context, id string) error
	// Entries lists the instances that are live. It may return entries together with an
	// error: then only some servers have answered.
	Entries(ctx context.Context) ([]Entry, error)
	// Trouble returns why the backend cannot be reached, judged by its connections
	// alone; nil means that nothing is known to be wrong.
	Trouble() error
	// Table returns the table of small rows that the fleet shares; nil if there is none.
	Table() Table
	// Shelf returns the shelf of that name, which keeps the last versions of a large text; nil
	// if there is none.
	Shelf(name string) Shelf
	// Tallies returns where instances exchange what they have counted; nil if there is none.
	Tallies() Tallies
	// Regions returns what connects the stores of several regions; nil if there is none.
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
