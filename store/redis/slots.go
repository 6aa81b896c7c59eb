package redis

import (
	"context"
	"slices"

	"tidegate.dev/tidegate"
)

// maxAbandoned bounds the copies of a request without an answer whose slots are given back.
const maxAbandoned = 1024

// abandon gives back, in the background, slots of a request that had no answer. If that fails as
// well, they stay taken until their lease runs out.
func (s *Store) abandon(ctx context.Context, pending []*pendingCheck, o takeParams) {
	var changes []change
	for _, p := range pending {
		for i := range min(o.copies, maxAbandoned) {
			if p.leased() {
				changes = append(changes, change{lim: p.lim, key: p.key, act: giveBack, n: p.cost, handle: o.handle.Copy(i), former: o.at != nil})
			}
		}
	}
	if len(changes) == 0 {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), returnTimeout)
		defer cancel()
		_ = s.besides(ctx, changes, func() error {
			_, err := s.applyAll(ctx, changes)
			return err
		})
	}()
}

// newSlotHandle returns a new handle for the slots among the checks; zero if there are none.
func newSlotHandle(pending []*pendingCheck) tidegate.Handle {
	if slices.ContainsFunc(pending, (*pendingCheck).leased) {
		return tidegate.NewHandle()
	}
	return tidegate.Handle{}
}
