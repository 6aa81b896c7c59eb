package split

import (
	"context"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain/share"
)

// putBack gives so many copies of what the own store granted of p back to it.
func (s *Store) putBack(ctx context.Context, p *part, taken tidegate.Receipt, copies int64) {
	for i := range p.asked {
		c := &p.asked[i]
		if c.Cost *= -copies; p.own[p.askedFrom[i]].Over { // it was not charged
			c.Cost = 0
		}
	}
	_ = s.local.Adjust(context.WithoutCancel(ctx), taken, p.asked) // it has just answered
}

// mark begins the names of this layer's counters in receipts.
const mark = "split\x00"

// whose divides checks by their receipt; see share.Receipts.
func (s *Store) whose(r tidegate.Receipt, checks []tidegate.Check) share.Divided {
	return s.receipts.Divide(r, checks, func(l *tidegate.Limit) bool {
		return Is(l) || s.o.Whole && r.Origin == tidegate.OriginSplit
	})
}
