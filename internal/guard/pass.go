package guard

import (
	"context"
	"slices"
	"strings"
	"time"

	"tidegate.dev/tidegate"
)

// pass calls the inner store by the deadline, unless it is left alone. It is not
// tried again, whatever comes of it.
func (g *Guard) pass(ctx context.Context, do func(context.Context) error) error {
	if g.share.Load() == 0 {
		return *g.why.Load()
	}
	return g.reach(ctx, false, do)
}

// reach is pass even if the inner store is left alone.
func (g *Guard) reach(ctx context.Context, aside bool, do func(context.Context) error) error {
	if g.o.Inline {
		now := g.now()
		err := safely(g.roundAt(now).within(ctx), do)
		g.judge(err, now, aside)
		return err
	}
	c := g.calls.Get().(*call)
	c.do, c.began, c.aside = do, g.now(), aside
	behind, err := g.wait(ctx, c)
	if !behind {
		c.release()
	}
	return err
}

// copied is checks with keys of their own: a call that is left behind must not look
// at memory of the caller's.
func copied(checks []tidegate.Check) []tidegate.Check {
	checks = slices.Clone(checks)
	for i := range checks {
		checks[i].Key = strings.Clone(checks[i].Key)
	}
	return checks
}

// Adjust implements tidegate.Store. What was taken from the local store is given
// back there, and no longer owed to the inner one if it still is.
func (g *Guard) Adjust(ctx context.Context, at int64, checks []tidegate.Check) error {
	if at < 0 {
		return g.adjustLocal(ctx, at^receipt, checks)
	}
	checks = copied(checks)
	return g.pass(ctx, func(ctx context.Context) error { return g.inner.Adjust(ctx, at, checks) })
}

func (g *Guard) adjustLocal(ctx context.Context, at int64, checks []tidegate.Check) error {
	nodes, now := g.nodes(), g.now()
	p := g.localOnes(checks, nodes)
	err := g.local.Adjust(ctx, at, p.checks)
	g.owe(checks, p, 1, nodes, now)
	return err
}

// localOnes are those of checks that the local store counts, as it is asked for them.
func (g *Guard) localOnes(checks []tidegate.Check, nodes int64) *part {
	p := new(part)
	for i, c := range checks {
		if g.mode(c.Limit) != tidegate.FailLocal {
			continue
		}
		back := c.Cost < 0
		if back {
			c.Cost = -c.Cost
		}
		c = g.scaled(c, nodes)
		if back {
			c.Cost = -c.Cost
		}
		p.add(c, i)
	}
	return p
}

// Renew implements tidegate.Renewer.
func (g *Guard) Renew(ctx context.Context, at int64, checks []tidegate.Check) error {
	if at < 0 {
		return g.local.Renew(ctx, at^receipt, g.localOnes(checks, g.nodes()).checks)
	}
	r, ok := g.inner.(tidegate.Renewer)
	if !ok {
		return tidegate.ErrUnsupported
	}
	checks = copied(checks)
	return g.pass(ctx, func(ctx context.Context) error { return r.Renew(ctx, at, checks) })
}

// Reserve implements tidegate.Reserver. There is no fallback: who cannot settle
// cannot reserve, and the caller says what becomes of the request.
func (g *Guard) Reserve(ctx context.Context, checks []tidegate.Check, ttl time.Duration) (tidegate.Decision, string, error) {
	r, ok := g.inner.(tidegate.Reserver)
	if !ok {
		return tidegate.Decision{}, "", tidegate.ErrUnsupported
	}
	if misused(checks, 1) || ttl <= 0 {
		return g.local.Reserve(ctx, checks, ttl) // says so
	}
	type answer struct {
		checks []tidegate.Check
		d      tidegate.Decision
		id     string
	}
	a := &answer{checks: copied(checks)}
	now := g.now()
	err := g.pass(ctx, func(ctx context.Context) (err error) {
		a.d, a.id, err = r.Reserve(ctx, a.checks, ttl)
		return err
	})
	if err != nil {
		return tidegate.Decision{}, "", err
	}
	for i := range checks {
		checks[i].Over = a.checks[i].Over
	}
	g.remember(checks, &a.d, now)
	return a.d, a.id, nil
}

// Settle implements tidegate.Reserver.
func (g *Guard) Settle(ctx context.Context, id string, actual int64) error {
	r, ok := g.inner.(tidegate.Reserver)
	if !ok {
		return tidegate.ErrUnsupported
	}
	if actual < 0 {
		return g.local.Settle(ctx, id, actual) // says so
	}
	id = strings.Clone(id)
	return g.pass(ctx, func(ctx context.Context) error { return r.Settle(ctx, id, actual) })
}

// Reset implements tidegate.Resetter. What this node knows of the keys is forgotten
// whether the inner store can be reached or not.
func (g *Guard) Reset(ctx context.Context, checks []tidegate.Check) error {
	r, ok := g.inner.(tidegate.Resetter)
	if !ok {
		return tidegate.ErrUnsupported
	}
	checks = copied(checks)
	err := g.pass(ctx, func(ctx context.Context) error { return r.Reset(ctx, checks) })
	g.forget(ctx, checks)
	return err
}

func (g *Guard) forget(ctx context.Context, checks []tidegate.Check) {
	g.mu.Lock()
	for _, c := range checks {
		delete(g.owed.byID, who{c.Limit.Identity(), c.Key})
	}
	g.mu.Unlock()
	for _, c := range checks {
		name := g.seen.name(c.Limit, c.Key)
		_, _, word := g.seen.look(name)
		g.seen.forget(name, word)
	}
	_ = g.local.Reset(ctx, checks) // limits that the inner store takes, it takes
}
