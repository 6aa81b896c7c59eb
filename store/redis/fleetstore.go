package redis

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
)

// fleetStore is a Store for package fleet: with methods that the layers in front of a store
// need, and that would be in the way of everybody else.
type fleetStore struct{ *Store }

var _ chain.Shared = fleetStore{}

func init() {
	chain.Inside(func(s tidegate.Store) (chain.Shared, bool) {
		own, ok := s.(*Store)
		return fleetStore{own}, ok
	})
}
