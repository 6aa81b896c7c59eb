package node

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"tidegate.dev/tidegate"
)

// takeMixed decides a vector of which fallbacks decide a part. That part comes first, since what
// it takes can always be given back if the backend refuses.
func (n *Node) takeMixed(ctx context.Context, checks []tidegate.Check, here, there *side, copies int, now time.Duration) (tidegate.Decision, error) {
	local, admitted, err := n.decideLocally(here.checks, copies, here.why, now, false)
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
		n.addToBacklog(here.checks, min(admitted, kept))
	}
	if err != nil || !d.OK {
		return d, err
	}
	return n.mixed(&d, &local, here.checks), nil
}

// copyOver copies Over of the side's checks into the vector that they are a part of.
func (s *side) copyOver(checks []tidegate.Check) {
	for i, at := range s.from {
		checks[at].Over = s.checks[i].Over
	}
}

// putBack returns to the local store some of the copies that it granted: those numbered from, from+1
// and so on up to to-1.
func (n *Node) putBack(checks []tidegate.Check, taken tidegate.Receipt, from, to int64) {
	p := n.localPart(checks, n.nodesAt(taken))
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

// mixed joins d and local, which have both admitted their parts of a vector: the decision is
// about the limit with the smaller share left, and the receipt is for both parts.
func (n *Node) mixed(d, local *tidegate.Decision, here []tidegate.Check) tidegate.Decision {
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
		apart.Local[n.localName(&here[i])] = local.Receipt.At - d.Receipt.At
	}
	told.Receipt.Apart = &apart
	return told
}

// localName returns the name in receipts of a counter that was charged in this process.
func (n *Node) localName(c *tidegate.Check) string {
	return strconv.FormatUint(n.instance, 36) + "\x00" + counterName(c)
}

func counterName(c *tidegate.Check) string { return c.Limit.Identity() + "\x00" + c.Key }

// divided is checks, divided by where they were charged, with the receipt for each part.
type divided struct {
	ours   tidegate.Receipt
	here   []tidegate.Check
	theirs tidegate.Receipt
	there  []tidegate.Check
	err    error // ErrElsewhere if another node has charged some
}

// divide divides checks, by their receipt, into those charged here and those charged to the backend.
func (n *Node) divide(r tidegate.Receipt, checks []tidegate.Check) divided {
	if r.Apart == nil || r.Apart.Local == nil {
		return divided{ours: r, theirs: r, there: checks}
	}
	v := divided{ours: r, theirs: r}
	v.ours.Origin, v.ours.Apart = tidegate.OriginLocal, nil
	for _, c := range checks {
		later, ok := r.Apart.Local[n.localName(&c)]
		switch {
		case ok:
			v.ours.At = r.At + later
			v.here = append(v.here, c)
		case !isElsewhere(r.Apart.Local, &c):
			v.there = append(v.there, c)
		case n.mode(c.Limit) == tidegate.FailLocal: // else nobody was charged
			v.err = tidegate.ErrElsewhere
		}
	}
	if v.theirs.Apart = nil; r.Apart.At != nil {
		v.theirs.Apart = &tidegate.Apart{At: r.Apart.At}
	}
	return v
}

// each calls local with what was charged here, and whole with the rest.
func (v divided) each(ctx context.Context, local, whole func(context.Context, tidegate.Receipt, []tidegate.Check) error) error {
	if v.err == nil && len(v.here) == 0 {
		return whole(ctx, v.theirs, v.there)
	}
	err := v.err
	if len(v.here) > 0 {
		err = errors.Join(err, local(ctx, v.ours, v.here))
	}
	if len(v.there) > 0 {
		err = errors.Join(err, whole(ctx, v.theirs, v.there))
	}
	return err
}

// isElsewhere reports whether local has the counter of c, whichever node charged it. Earlier versions do
// not write the node into the name.
func isElsewhere(local map[string]int64, c *tidegate.Check) bool {
	counter := counterName(c)
	for name := range local {
		if _, of, _ := strings.Cut(name, "\x00"); of == counter || name == counter {
			return true
		}
	}
	return false
}
