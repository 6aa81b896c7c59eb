package redis

import (
	"context"
	"sync"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// subject is the checks of one request that live in one slot of a cluster.
type subject struct {
	tag   string
	plans []*plan
	rate  float64 // events per second, of the fastest of its limits
	named bool    // it has leases: copy i is named by its receipt plus i
	grant grant
	err   error
}

// split sorts plans by subject, the widest last: the one that most requests have in
// common, by the highest rate of its limits.
func split(plans []*plan) []*subject {
	var all []*subject
	byTag := map[string]*subject{}
	for _, p := range plans {
		tag := tagOf(p.key)
		sub := byTag[tag]
		if sub == nil {
			sub = &subject{tag: tag}
			byTag[tag] = sub
			all = append(all, sub)
		}
		sub.plans = append(sub.plans, p)
		sub.rate = max(sub.rate, p.b.rate)
		sub.named = sub.named || p.b.kind == leases
	}
	last := len(all) - 1
	for i := range all {
		if all[i].rate > all[last].rate {
			all[i], all[last] = all[last], all[i]
		}
	}
	return all
}

// decideApart decides about several subjects of a cluster: all but the widest at the
// same time, and that one only when they have granted, so that whoever is refused by
// its own limits takes no place in it. What was granted and is not used is given back;
// not so where an answer was lost, as nobody knows whether there was a charge. Such a
// request costs the others at most what it asked for, and nothing is ever over.
func (s *Store) decideApart(ctx context.Context, plans []*plan, subjects []*subject, o order) (tidegate.Decision, grant, error) {
	narrow, widest := subjects[:len(subjects)-1], subjects[len(subjects)-1]
	copies, err := s.askNarrow(ctx, narrow, o.copies)
	switch {
	case err != nil:
	case copies > 0:
		o.rec.note(narrow)
		widest.grant, err = s.ask(ctx, widest.plans, order{copies: copies, rec: o.rec})
		copies = widest.grant.copies
	default: // the answer is also about its limits, and what is rejected may count there
		widest.grant, err = s.ask(ctx, widest.plans, order{copies: o.copies, refused: true})
	}
	s.takeBack(ctx, narrow, copies)
	if err != nil {
		return tidegate.Decision{}, grant{}, err
	}
	g := grant{copies: copies, at: widest.grant.at}
	if copies > 0 {
		g.at = s.receipts.keep(subjects, copies)
	}
	return decision(plans, g, o.copies), g, nil
}

// askNarrow asks subjects at the same time. It returns what all of them have granted,
// none if one could not answer.
func (s *Store) askNarrow(ctx context.Context, subjects []*subject, n int64) (int64, error) {
	var all sync.WaitGroup
	for _, sub := range subjects {
		all.Go(func() { sub.grant, sub.err = s.ask(ctx, sub.plans, order{copies: n}) })
	}
	all.Wait()
	for _, sub := range subjects {
		if sub.err != nil {
			return 0, sub.err
		}
		n = min(n, sub.grant.copies)
	}
	return n, nil
}

// backTime is how long returns may go on after their request was answered.
const backTime = time.Second

// takeBack gives back what subjects have granted beyond so many copies. It waits for
// that, but no longer than ctx.
func (s *Store) takeBack(ctx context.Context, subjects []*subject, keep int64) {
	var changes []change
	for _, sub := range subjects {
		if sub.err != nil || sub.grant.copies == 0 {
			continue
		}
		for _, p := range sub.plans {
			changes = append(changes, p.surplus(keep)...)
		}
	}
	if len(changes) == 0 {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), backTime)
		defer cancel()
		// What cannot be given back stays charged.
		_, _ = s.applyAll(ctx, changes)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// surplus is what gives back all that p got beyond so many copies, and makes its
// answer what it is afterwards.
func (p *plan) surplus(keep int64) []change {
	extra := p.answer.got - keep
	if extra <= 0 || p.cost == 0 || keep == 0 && p.b.limit.CountRejected {
		return nil
	}
	back := change{b: p.b, key: p.key, act: giveBack, n: extra * p.cost, at: p.at}
	p.answer.left += back.n
	switch law := &p.b.bucket; p.b.kind {
	case buckets:
		p.answer.reset -= back.n * law.Em
		p.answer.left = max(0, (law.Tau-p.answer.reset)/law.Em)
		back.at += p.answer.other // a turn that was booked is returned at its own instant
		if law.Leaky {
			back.at += keep * p.cost * law.Em
			ahead := min(p.wait, p.b.longest) - p.answer.reset
			p.answer.left = min(p.answer.left, max(0, ahead/law.Em+1))
			if ahead < 0 {
				p.answer.left = 0
			}
		}
	case leases: // each copy has its own name
		changes := make([]change, 0, extra)
		for i := keep; i < p.answer.got; i++ {
			back.n, back.at = p.cost, p.at+i
			changes = append(changes, back)
		}
		return changes
	}
	return []change{back}
}

// ratePerSecond tells limits of many from limits of few.
func ratePerSecond(l *tidegate.Limit) float64 {
	period := l.Period
	if l.Algorithm == tidegate.Quota {
		span := algo.SpanAt(l, 0)
		period = time.Duration(span.End-span.Start) * time.Microsecond
	}
	return float64(l.Events) / period.Seconds()
}
