package node

import (
	"context"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
)

// TakeAhead takes checks from the backend up to copies times, to be used until life after the call
// began; see [chain.Ask.Lease]. If not all were granted, rest is the refusal of the next copy. There
// is no fallback: an error means that the backend was not asked, has failed, or has not answered in
// time, and what it grants after that is lost.
func (n *Node) TakeAhead(ctx context.Context, checks []tidegate.Check, copies int, life time.Duration) (granted, rest tidegate.Decision, err error) {
	checks = copied(checks) // a call that was given up still uses them
	began := n.now()
	if n.impaired.Load() {
		target, where := n.serversFor(checks, nil)
		if target != n.multi {
			where = target.self[:]
		}
		for _, s := range where {
			if !s.asks(checks, began) {
				return granted, rest, s.reason()
			}
		}
	}
	answer := make(chan chain.Ask, 1)
	err = n.passWhole(ctx, checks, func(ctx context.Context) error {
		asks := []chain.Ask{{Checks: checks, Copies: copies, Lease: life}}
		err := n.inner.TakeBatch(ctx, asks)
		if err == nil {
			err = asks[0].Err
		}
		answer <- asks[0]
		return err
	})
	if err != nil {
		return granted, rest, err
	}
	got := <-answer
	n.count.calls.Add(1)
	n.see(checks, &got.Granted, began)
	if granted = got.Granted; !granted.OK {
		return granted, granted, nil
	}
	return granted, got.Rest, nil
}
