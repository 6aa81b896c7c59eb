package redis

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
)

// inside is a Store as package fleet has it: with abilities that layers before a store need,
// and that would be in the way of everybody else.
type inside struct{ *Store }

var _ chain.Shared = inside{}

func init() {
	chain.Inside(func(s tidegate.Store) (chain.Shared, bool) {
		own, ok := s.(*Store)
		return inside{own}, ok
	})
}
