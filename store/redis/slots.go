package redis

import (
	"context"
	"slices"

	"tidegate.dev/tidegate"
)

// maxAbandoned is of how many copies slots are given back that nobody knows the answer for.
const maxAbandoned = 1024

// abandon gives slots back, in the background, that were asked for without an answer. A
// server that does not answer for longer keeps them for a lease.
func (s *Store) abandon(ctx context.Context, plans []*plan, o order) {
	var changes []change
	for _, p := range plans {
		for i := range min(o.copies, maxAbandoned) {
			if p.leased() {
				changes = append(changes, change{b: p.b, key: p.key, act: giveBack, n: p.cost, handle: o.handle.Copy(i)})
			}
		}
	}
	if len(changes) == 0 {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), backTime)
		defer cancel()
		_, _ = s.applyAll(ctx, changes)
	}()
}

// slotsOf is a new name for the slots among plans; zero if there are none.
func slotsOf(plans []*plan) tidegate.Handle {
	if slices.ContainsFunc(plans, (*plan).leased) {
		return tidegate.NewHandle()
	}
	return tidegate.Handle{}
}
