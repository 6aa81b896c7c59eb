package redis

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
)

// fleetStore is a Store with the methods that only the layers of package fleet call. They
// are not methods of Store, so that its users do not see them.
type fleetStore struct{ *Store }

var _ chain.Shared = fleetStore{}

func init() {
	chain.RegisterShared(func(s tidegate.Store) (chain.Shared, bool) {
		own, ok := s.(*Store)
		return fleetStore{own}, ok
	})
}
