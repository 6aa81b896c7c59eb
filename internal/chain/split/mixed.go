package split

import (
	"context"
	"maps"
	"strconv"
	"strings"

	"tidegate.dev/tidegate"
)

// putBack gives the own store back what it granted of p beyond what is kept.
func (s *Store) putBack(ctx context.Context, p *part, taken tidegate.Receipt, copies int64) {
	for i := range p.asked {
		c := &p.asked[i]
		if c.Cost *= -copies; p.own[p.askedFrom[i]].Over { // it was not charged
			c.Cost = 0
		}
	}
	_ = s.local.Adjust(context.WithoutCancel(ctx), taken, p.asked) // it has just answered
}

// mixed is what is told of a vector that own and d have both admitted their parts of: what is
// about the smaller share left, with a receipt for both.
func (s *Store) mixed(d, own *tidegate.Decision, p *part) tidegate.Decision {
	told := *d
	if own.Outranks(d) {
		told.Limit, told.Remaining, told.ResetAfter = own.Limit, own.Remaining, own.ResetAfter
	}
	told.Wait = max(d.Wait, own.Wait)
	apart := tidegate.Apart{Local: make(map[string]int64, len(p.own))}
	if was := d.Receipt.Apart; was != nil {
		apart.At = was.At
		maps.Copy(apart.Local, was.Local) // of a layer below
	}
	for i := range p.own {
		apart.Local[s.name(&p.own[i])] = own.Receipt.At - d.Receipt.At
	}
	told.Receipt.Apart = &apart
	return told
}

// name is what a receipt calls the counter of a check that is counted in the shares of this
// instance.
func (s *Store) name(c *tidegate.Check) string {
	return mark + strconv.FormatUint(s.instance, 36) + "\x00" + c.Limit.Identity() + "\x00" + c.Key
}

// mark begins the names of this layer. No identity of a limit does.
const mark = "split\x00"

// whose divides checks by what a receipt says: those that were charged here, by their own
// receipt, and those that were not, by the one that the store below knows. What is charged
// unasked goes to the counters that the limit has now. It returns an error about those that
// were charged by another instance.
func (s *Store) whose(r tidegate.Receipt, checks []tidegate.Check) (ours tidegate.Receipt, here []tidegate.Check, theirs tidegate.Receipt, there []tidegate.Check, elsewhere error) {
	ours, theirs = r, r
	ours.Apart, theirs.Apart = nil, without(r.Apart)
	for _, c := range checks {
		if !Is(c.Limit) && !(s.o.Whole && r.Origin == tidegate.OriginSplit) {
			there = append(there, c)
			continue
		}
		later, apart := int64(0), false
		if r.Apart != nil {
			later, apart = r.Apart.Local[s.name(&c)]
		}
		switch {
		case apart:
			ours.At = r.At + later
			here = append(here, c)
		case r.Origin == tidegate.OriginSplit || r.At == 0 || c.Cost >= 0:
			here = append(here, c)
		case theirs.Apart != r.Apart: // a part of it is another instance's
			elsewhere = tidegate.ErrElsewhere
		default: // it was not counted in shares then
			there = append(there, c)
		}
	}
	return ours, here, theirs, there, elsewhere
}

// without is apart as the store below wrote it.
func without(apart *tidegate.Apart) *tidegate.Apart {
	if apart == nil {
		return nil
	}
	is := tidegate.Apart{At: apart.At, Local: maps.Clone(apart.Local)}
	maps.DeleteFunc(is.Local, func(name string, _ int64) bool { return strings.HasPrefix(name, mark) })
	switch {
	case len(is.Local) == len(apart.Local):
		return apart
	case len(is.Local) > 0:
		return &is
	case is.At == nil:
		return nil
	}
	is.Local = nil
	return &is
}
