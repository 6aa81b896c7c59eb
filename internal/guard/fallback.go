package guard

import (
	"context"
	"math"
	"time"

	"tidegate.dev/tidegate"
)

// receipt marks the receipts of what the inner store was not charged for: the time of
// the local store with the sign of what no store's clock shows. Instants near it, such
// as of a booked turn, have the mark as well.
const receipt = math.MinInt64

// denyRetry is when who is denied may ask again: there is no telling when the store
// will be back.
const denyRetry = time.Second

// part is the part of a vector that the local store is asked about.
type part struct {
	checks []tidegate.Check
	from   []int // where they stand in the whole
}

func (p *part) add(c tidegate.Check, i int) {
	p.checks, p.from = append(p.checks, c), append(p.from, i)
}

// limit is the limit of the whole that the local store means by l.
func (p *part) limit(whole []tidegate.Check, l *tidegate.Limit) *tidegate.Limit {
	for i := range p.checks {
		if p.checks[i].Limit == l {
			return whole[p.from[i]].Limit
		}
	}
	return l
}

func (g *Guard) mode(l *tidegate.Limit) tidegate.FailMode {
	if l.Terms != nil {
		return l.Terms.OnStoreFailure
	}
	return *g.o.Default
}

// fallback answers for the inner store, which could not because of err. One enforced
// check that fails closed refuses, before anything is charged; those that go on
// locally decide together; the others admit.
func (g *Guard) fallback(checks []tidegate.Check, n int, err error, now time.Duration) (tidegate.Decision, error) {
	p := g.parts.Get().(*part)
	defer g.putPart(p)
	nodes := g.nodes()
	d := tidegate.Decision{Err: err, At: receipt, Origin: tidegate.OriginRule}
	counted := false
	for i := range checks {
		c := &checks[i]
		if c.Advisory {
			c.Over = false
		} else if d.Limit == nil {
			d.Limit = c.Limit
		}
		switch mode := g.mode(c.Limit); {
		case mode == tidegate.FailLocal:
			counted = counted || !c.Advisory
			p.add(g.scaled(*c, nodes), i)
		case mode == tidegate.FailClosed && !c.Advisory:
			g.count.denied.Add(1)
			d.Limit, d.RetryAfter = c.Limit, denyRetry
			return d, nil
		}
	}
	if len(p.checks) > 0 {
		told, err := g.goOn(checks, p, n, nodes, !unsure(err), now)
		switch {
		case err != nil:
			return tidegate.Decision{}, err
		case counted && told.OK:
			g.count.admitted.Add(1)
			return told, nil
		case counted:
			g.count.refused.Add(1)
			return told, nil
		}
	}
	g.count.allowed.Add(1)
	d.OK, d.Granted = true, int64(n)
	return d, nil
}

func (g *Guard) putPart(p *part) {
	clear(p.checks)
	p.checks, p.from = p.checks[:0], p.from[:0]
	g.parts.Put(p)
}

// goOn asks the local store about p. What it admits is owed, unless the inner store may
// have charged it.
func (g *Guard) goOn(checks []tidegate.Check, p *part, n int, nodes int64, owed bool, now time.Duration) (tidegate.Decision, error) {
	for i := range p.checks {
		g.seed(&checks[p.from[i]], nodes, now)
	}
	d, err := g.local.Take(context.Background(), p.checks, n)
	if err != nil {
		return tidegate.Decision{}, err
	}
	for i, at := range p.from {
		checks[at].Over = p.checks[i].Over
	}
	if d.Limit != nil {
		if d.Limit = p.limit(checks, d.Limit); d.Limit.Algorithm != tidegate.Concurrency {
			d.Remaining /= nodes
		}
	}
	d.At |= receipt
	d.Origin = tidegate.OriginLocal
	if d.OK && owed {
		g.owe(checks, p, d.Granted, nodes, now)
	}
	return d, nil
}

// seed brings the local counter of c up to what was last seen of it in the inner
// store, less what has drained since, and what is still owed there.
func (g *Guard) seed(c *tidegate.Check, nodes int64, now time.Duration) {
	name := g.seen.name(c.Limit, c.Key)
	if _, _, word := g.seen.look(name); word == 0 {
		return
	}
	g.seeding.Lock()
	defer g.seeding.Unlock()
	used, when, word := g.seen.look(name)
	if word == 0 {
		return
	}
	known := fade(c.Limit, float64(used), g.wall(when), g.wall(now))
	target := int64(g.reconcile(c, known, nodes, now))
	if here, err := g.localUse(c.Limit, c.Key); err == nil && here < target {
		more := []tidegate.Check{{Key: c.Key, Limit: c.Limit, Cost: target - here}}
		_ = g.local.Adjust(context.Background(), 0, more) // it has just answered
	}
	g.seen.forget(name, word)
}
