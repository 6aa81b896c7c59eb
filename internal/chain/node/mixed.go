package node

import (
	"context"
	"time"

	"tidegate.dev/tidegate"
)

// takeMixed decides about a vector of which fallbacks decide a part: that first, since what
// it takes is surely given back if the backend refuses.
func (n *Node) takeMixed(ctx context.Context, checks []tidegate.Check, here, there *side, copies int, now time.Duration) (tidegate.Decision, error) {
	local, admitted, err := n.fallback(here.checks, copies, here.why, now, false)
	here.copyOver(checks)
	if err != nil || !local.OK {
		return local, err
	}
	t, _ := traitsOf(there.checks)
	if local.Granted != 1 {
		t &^= coalescible
	}
	var d tidegate.Decision
	err = n.ask(ctx, there.checks, int(local.Granted), t, n.now(), &d)
	there.copyOver(checks)
	kept := d.Granted
	if err != nil || !d.OK {
		kept = 0
	}
	if admitted > kept {
		n.putBack(here.checks, local.Receipt, kept, admitted)
	}
	if admitted > 0 && kept > 0 {
		n.owe(here.checks, min(admitted, kept))
	}
	if err != nil || !d.OK {
		return d, err
	}
	return mixed(&d, &local, here.checks), nil
}

func (s *side) copyOver(checks []tidegate.Check) {
	for i, at := range s.from {
		checks[at].Over = s.checks[i].Over
	}
}

// putBack gives the local store back what it granted of checks beyond the first copies.
func (n *Node) putBack(checks []tidegate.Check, taken tidegate.Receipt, from, to int64) {
	p := n.localPart(checks, n.nodes())
	for i := range p.checks {
		p.checks[i].Cost = -p.checks[i].Cost
		if checks[p.from[i]].Over { // it was not charged
			p.checks[i].Cost = 0
		}
	}
	for i := from; i < to; i++ {
		_ = n.local.Adjust(context.Background(), taken.Copy(i), p.checks) // it has just answered
	}
}

// mixed is what is told of a vector that d and local have both admitted their parts of:
// what is about the smaller share left, with a receipt for both.
func mixed(d, local *tidegate.Decision, here []tidegate.Check) tidegate.Decision {
	told := *d
	if local.Receipt.Origin == tidegate.OriginLocal && local.Outranks(d) {
		told.Limit, told.Remaining, told.ResetAfter = local.Limit, local.Remaining, local.ResetAfter
	}
	told.Wait = max(d.Wait, local.Wait)
	apart := tidegate.Apart{Local: make(map[string]int64, len(here))}
	if d.Receipt.Apart != nil {
		apart.At = d.Receipt.Apart.At
	}
	for i := range here {
		apart.Local[localName(&here[i])] = local.Receipt.At - d.Receipt.At
	}
	told.Receipt.Apart = &apart
	return told
}

// localName is what a receipt calls the counter of a check.
func localName(c *tidegate.Check) string { return c.Limit.Identity() + "\x00" + c.Key }

// divide divides checks by what a receipt says: those that were charged here, by their own
// receipt, and those that were not, by the one that the backend knows.
func divide(r tidegate.Receipt, checks []tidegate.Check) (ours tidegate.Receipt, here []tidegate.Check, theirs tidegate.Receipt, there []tidegate.Check) {
	if r.Apart == nil || r.Apart.Local == nil {
		return r, nil, r, checks
	}
	ours, theirs = r, r
	ours.Origin, ours.Apart = tidegate.OriginLocal, nil
	for _, c := range checks {
		if later, ok := r.Apart.Local[localName(&c)]; ok {
			ours.At = r.At + later
			here = append(here, c)
		} else {
			there = append(there, c)
		}
	}
	if theirs.Apart = nil; r.Apart.At != nil {
		theirs.Apart = &tidegate.Apart{At: r.Apart.At}
	}
	return ours, here, theirs, there
}
