package node

import (
	"context"
	"math"
	"time"

	"tidegate.dev/tidegate"
)

// denyRetry is the RetryAfter of a request that on_store_failure denies: nobody knows when
// the store will be back.
const denyRetry = time.Second

// part is a part of a vector, as the local store is asked about it.
type part struct {
	checks []tidegate.Check // first own checks of the vector, then paces of these; see pace
	from   []int            // the index in the vector that each is for
	own    int              // how many checks are not paces
}

// add adds a check; paces come after all others.
func (p *part) add(c tidegate.Check, i int) {
	p.checks, p.from = append(p.checks, c), append(p.from, i)
	p.own = len(p.checks)
}

func (p *part) addPace(c tidegate.Check, i int) {
	p.checks, p.from = append(p.checks, c), append(p.from, i)
}

// limit returns the limit of the vector for l, which the local store has returned.
func (p *part) limit(whole []tidegate.Check, l *tidegate.Limit) *tidegate.Limit {
	for i := range p.checks {
		if p.checks[i].Limit == l {
			return whole[p.from[i]].Limit
		}
	}
	return l
}

// mode returns the fallback of a limit.
func (n *Node) mode(l *tidegate.Limit) tidegate.FailMode {
	if l.Terms != nil && l.Terms.Handling.OnStoreFailure != tidegate.FailDefault {
		return l.Terms.Handling.OnStoreFailure
	}
	return n.o.Default
}

// fallBack decides when the backend has no answer because of err.
func (n *Node) fallBack(ctx context.Context, checks []tidegate.Check, copies int, err error) (tidegate.Decision, error) {
	if ctx.Err() != nil {
		return tidegate.Decision{}, err
	}
	n.unaskable.note(checks, err, time.Now())
	d, _, err := n.decideLocally(checks, copies, err, n.now(), !mayBeCharged(err) || n.barred(checks))
	return d, err
}

// barred reports whether the backend is known to be unable to decide one of checks. A call
// without an answer was then not charged.
func (n *Node) barred(checks []tidegate.Check) bool {
	for i := range checks {
		if n.unaskable.barred(checks[i].Limit) {
			return true
		}
	}
	return false
}

// decideLocally decides in place of the backend, which has no answer because of err. An enforced
// check that fails closed refuses before anything is charged; the checks that fall back to local
// counting decide together; the others admit. repaid means that what the local store admits goes
// to the backlog. admitted is how many copies the local store has admitted.
func (n *Node) decideLocally(checks []tidegate.Check, copies int, err error, now time.Duration, repaid bool) (d tidegate.Decision, admitted int64, _ error) {
	p := n.parts.Get().(*part)
	defer n.putPart(p)
	nodes := n.nodes()
	d = tidegate.Decision{Err: err, Receipt: tidegate.Receipt{Origin: tidegate.OriginRule}}
	counted := false
	for i := range checks {
		c := &checks[i]
		if c.Advisory {
			c.Over = false
		} else if d.Limit == nil {
			d.Limit = c.Limit
		}
		switch mode := n.mode(c.Limit); {
		case mode == tidegate.FailLocal:
			if still, ok := n.stillRefused(c, now); ok {
				n.count.refused.Add(1)
				return still, 0, nil
			}
			counted = counted || !c.Advisory
			p.add(n.scaled(*c, nodes), i)
		case mode == tidegate.FailClosed && !c.Advisory:
			n.count.closed.Add(1)
			d.Limit, d.RetryAfter = c.Limit, denyRetry
			return d, 0, nil
		}
	}
	if len(p.checks) > 0 {
		n.addPaces(p, checks, nodes)
		told, err := n.takeLocal(checks, p, copies, nodes, repaid, now)
		switch {
		case err != nil:
			return tidegate.Decision{}, 0, err
		case counted && told.OK:
			n.count.admitted.Add(1)
			return told, told.Granted, nil
		case counted:
			n.count.refused.Add(1)
			return told, 0, nil
		}
		admitted = told.Granted
	}
	n.count.allowed.Add(1)
	d.OK, d.Granted = true, int64(copies)
	return d, admitted, nil
}

func (n *Node) putPart(p *part) {
	clear(p.checks)
	p.checks, p.from, p.own = p.checks[:0], p.from[:0], 0
	n.parts.Put(p)
}

// takeLocal asks the local store about p, a part of checks. repaid means that what it admits
// goes to the backlog.
func (n *Node) takeLocal(checks []tidegate.Check, p *part, copies int, nodes int64, repaid bool, now time.Duration) (tidegate.Decision, error) {
	for _, at := range p.from[:p.own] {
		n.seedLocal(&checks[at], nodes, now)
	}
	d, err := n.local.Take(context.Background(), p.checks, copies)
	if err != nil {
		return tidegate.Decision{}, err
	}
	for i, at := range p.from[:p.own] {
		checks[at].Over = p.checks[i].Over
	}
	if d.Limit != nil {
		if d.Limit = p.limit(checks, d.Limit); d.Limit.Algorithm != tidegate.Concurrency {
			d.Remaining /= nodes
		}
	}
	d.Receipt.Origin, d.Receipt.Instance = tidegate.OriginLocal, n.instance
	if d.OK {
		n.noteNodes(nodes, d.Receipt.At)
	}
	if d.OK && repaid {
		n.addPartToBacklog(checks, p, d.Granted, nodes, now)
	}
	return d, nil
}

// seedLocal raises the local counter of c to what was last seen of it in the backend, less what
// has drained since, plus the backlog.
func (n *Node) seedLocal(c *tidegate.Check, nodes int64, now time.Duration) {
	name := n.seen.name(c.Limit, c.Key)
	if _, _, word := n.seen.look(name); word == 0 {
		return
	}
	n.seeding.Lock()
	defer n.seeding.Unlock()
	used, when, word := n.seen.look(name)
	if word == 0 {
		return
	}
	known := fade(c.Limit, float64(used), n.wall(when), n.wall(now))
	s := n.serverOf(c)
	n.mu.Lock()
	target := int64(math.Ceil(s.backlog.reconcile(counterOf(c), known, nodes, now, s.reckonedLocked(now))))
	n.mu.Unlock()
	// The local store charges no more unasked. What is beyond counts if a wider version of the limit is asked about.
	beyond := target > 2*c.Limit.Capacity()
	if here, err := n.localUse(c.Limit, c.Key); err == nil && here < target && !(beyond && n.seeded[name] == word) {
		more := []tidegate.Check{{Key: c.Key, Limit: c.Limit, Cost: target - here}}
		_ = n.local.Adjust(context.Background(), tidegate.Receipt{}, more) // it has just answered
	}
	if !beyond {
		delete(n.seeded, name)
		n.seen.forget(name, word)
		return
	}
	if len(n.seeded) >= maxSeeded {
		clear(n.seeded)
	}
	n.seeded[name] = word
}

// maxSeeded bounds the number of keys that are remembered as seeded; any others are seeded again.
const maxSeeded = 1 << 12

// localUse returns how many events of l the local store says are used.
func (n *Node) localUse(l *tidegate.Limit, key string) (int64, error) {
	one := []tidegate.Check{{Key: key, Limit: l}}
	d, err := n.local.Take(context.Background(), one, 1)
	if err != nil {
		return 0, err
	}
	return usedOf(&d), nil
}
