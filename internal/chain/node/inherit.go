package node

import (
	"sync"
	"time"

	"tidegate.dev/tidegate"
)

// inheritance is the refusals that a predecessor remembered, by names that both processes can
// compute. It is dropped when the last of them is over.
type inheritance struct {
	until time.Duration // until then some of them answer in place of the backend; at most a second
	retry time.Duration // until then some of them hold while the backend is away

	mu  sync.Mutex
	all map[uint64][]inheritedDenial // under mu: by seen.name
}

type inheritedDenial struct {
	under uint64
	cost  int64
	refused
}

// inherited looks for a refusal of c, under the numbers that sum stands for, which a
// predecessor remembered.
func (n *Node) inherited(c *tidegate.Check, sum uint64) (refused, bool) {
	in := n.inherit.Load()
	if in == nil {
		return refused{}, false
	}
	if now := n.now(); now >= in.until {
		n.dropInheritance(in, now)
		return refused{}, false
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, d := range in.all[n.seen.name(c.Limit, c.Key)] {
		if d.under == sum && d.cost <= needed(c) {
			return d.refused, true
		}
	}
	return refused{}, false
}

// stillInherited is inherited for a backend that is away: see denials.findLate.
func (n *Node) stillInherited(c *tidegate.Check, now time.Duration) (r refused, ok bool) {
	in := n.inherit.Load()
	if in == nil || n.dropInheritance(in, now) {
		return r, false
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, d := range in.all[n.seen.name(c.Limit, c.Key)] {
		if d.cost <= needed(c) && (!ok || d.until > r.until) && n.deny.wasUnder(d.under, c.Limit) {
			r, ok = d.refused, true
		}
	}
	return r, ok
}

// dropInheritance drops in if its last refusal is over, and reports whether that is so.
func (n *Node) dropInheritance(in *inheritance, now time.Duration) bool {
	if now < in.retry {
		return false
	}
	n.inherit.Store(nil)
	return true
}

// forgetInherited forgets what a predecessor remembered of the counter of c, which got something
// back.
func (n *Node) forgetInherited(c *tidegate.Check) {
	in := n.inherit.Load()
	if in == nil {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.all, n.seen.name(c.Limit, c.Key))
}

// handedDenial is a remembered refusal.
type handedDenial struct {
	Name, Under         uint64
	Cost, Left          int64
	Until, Retry, Reset time.Time
}

// handDenials returns the refusals that are not over, including those of a predecessor.
func (n *Node) handDenials() (all []handedDenial) {
	now := n.now()
	add := func(name uint64, d inheritedDenial) {
		if d.retry > now {
			all = append(all, handedDenial{name, d.under, d.cost, d.left, n.toHandOver(d.until), n.toHandOver(d.retry), n.toHandOver(d.reset)})
		}
	}
	for i := range n.deny.sets {
		set := &n.deny.sets[i]
		turn := set.turn.Load()
		for j := range set.entries {
			e := &set.entries[j]
			if set.names[j].Load() == 0 { // there is none, or it was dropped
				continue
			}
			name := e.known.Load()
			d := inheritedDenial{e.under.Load(), e.cost.Load(), e.refused()}
			if turn%2 == 0 && set.turn.Load() == turn {
				add(name, d)
			}
		}
	}
	if in := n.inherit.Load(); in != nil {
		in.mu.Lock()
		defer in.mu.Unlock()
		for name, some := range in.all {
			for _, d := range some {
				add(name, d)
			}
		}
	}
	return all
}

// takeOverDenials adopts the refusals that a predecessor remembered, and its epoch.
func (n *Node) takeOverDenials(all []handedDenial, epoch uint64) {
	if len(all) == 0 || n.o.DenyEntries < 0 {
		return
	}
	in := &inheritance{all: make(map[uint64][]inheritedDenial, len(all))}
	for _, d := range all {
		one := inheritedDenial{d.Under, d.Cost, refused{
			until: min(d.Until.Sub(n.start), n.now()+maxDenial), retry: d.Retry.Sub(n.start), reset: d.Reset.Sub(n.start), left: d.Left,
		}}
		in.all[d.Name] = append(in.all[d.Name], one)
		in.until, in.retry = max(in.until, one.until), max(in.retry, one.retry)
	}
	n.deny.epoch.Store(epoch)
	n.deny.last(refused{until: in.until, retry: in.retry})
	n.inherit.Store(in)
}
