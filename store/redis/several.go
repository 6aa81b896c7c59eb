package redis

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"tidegate.dev/tidegate"
)

// subject is the checks of one request that live in one slot of a cluster.
type subject struct {
	tag   string
	plans []*plan
	width width
	grant grant
	err   error
}

// width tells subjects that many requests share from those of one caller.
type width struct {
	parts    int   // of the key that tell callers apart: none for everyone
	capacity int64 // of the largest of its limits
}

// compareWidth puts the narrow before the wide: what is told apart by more parts of a
// key is shared by fewer. Rates say nothing of that: 1000 an hour for everyone is wider
// than 5 a second for one caller.
func compareWidth(a, b *subject) int {
	return cmp.Or(cmp.Compare(b.width.parts, a.width.parts), cmp.Compare(a.width.capacity, b.width.capacity))
}

// split sorts plans by subject, the widest last.
func split(plans []*plan) []*subject {
	var all []*subject
	byTag := map[string]*subject{}
	for _, p := range plans {
		tag := tagOf(p.key)
		sub := byTag[tag]
		if sub == nil {
			sub = &subject{tag: tag, width: width{parts: partsOf(p.b.limit.Scope, p.check.Key)}}
			byTag[tag] = sub
			all = append(all, sub)
		}
		sub.plans = append(sub.plans, p)
		sub.width.capacity = max(sub.width.capacity, p.b.capacity)
	}
	slices.SortStableFunc(all, compareWidth)
	return all
}

// partsOf counts the parts of a key that tell callers apart. A route, a method or a host
// is shared by all who ask for it.
func partsOf(scope, key string) (n int) {
	if key == "" {
		return 0
	}
	for name := range strings.SplitSeq(scope, ",") {
		switch name {
		case "everyone", "route", "method", "host":
		default:
			n++
		}
	}
	return n
}

// decideApart decides about several subjects of a cluster, one after the other from the
// narrowest to the widest, so that whoever is refused by its own limits never takes a
// place that others could have had. What was granted and is not used is given back; not
// so where an answer was lost, as nobody knows whether there was a charge. Such a request
// costs the subjects at most what it asked for, and nothing is ever over.
func (s *Store) decideApart(ctx context.Context, plans []*plan, subjects []*subject, o order) (tidegate.Decision, grant, error) {
	copies, asked, err := o.copies, 0, error(nil)
	for copies > 0 && asked < len(subjects) && err == nil {
		sub, next := subjects[asked], order{copies: copies, handle: o.handle}
		if asked == len(subjects)-1 {
			o.rec.note(subjects[:asked])
			next.rec = o.rec
		}
		sub.grant, sub.err = s.ask(ctx, sub.plans, next)
		copies, err = sub.grant.copies, sub.err
		asked++
	}
	if err == nil && copies == 0 {
		err = s.askRefused(ctx, subjects[asked:], o.copies)
	}
	s.takeBack(ctx, subjects[:asked], copies)
	if err != nil {
		return tidegate.Decision{}, grant{}, err
	}
	g := grant{copies: copies, at: subjects[len(subjects)-1].grant.at, handle: o.handle}
	d := decision(plans, g, o.copies)
	if copies > 0 {
		d.Receipt.Apart = apart(subjects)
	}
	return d, g, nil
}

// apart is when each of subjects was charged, by the clocks of different machines.
func apart(subjects []*subject) *tidegate.Apart {
	at := make(map[string]int64, len(subjects)+1)
	for _, sub := range subjects {
		at[sub.tag], at[apartFrom] = sub.grant.at, sub.grant.at // in the end that of the last
	}
	return &tidegate.Apart{At: at}
}

// chargedAt is when the counter under key was charged for what r is the receipt of: by the
// clock of its server, where several took part. r.At may have been moved.
func chargedAt(r tidegate.Receipt, key string) int64 {
	if r.Apart != nil {
		if at, ok := r.Apart.At[tagOf(key)]; ok {
			return at + r.At - r.Apart.At[apartFrom]
		}
	}
	return r.At
}

// apartFrom is where a receipt over several slots says what At was at first. No tag is
// empty.
const apartFrom = ""

// askRefused asks subjects, at the same time, about a request that was refused already:
// the answer is also about their limits, and what is rejected may count there.
func (s *Store) askRefused(ctx context.Context, subjects []*subject, copies int64) error {
	var all sync.WaitGroup
	for _, sub := range subjects {
		all.Go(func() { sub.grant, sub.err = s.ask(ctx, sub.plans, order{copies: copies, refused: true}) })
	}
	all.Wait()
	for _, sub := range subjects {
		if sub.err != nil {
			return sub.err
		}
	}
	return nil
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
	if extra <= 0 || p.cost == 0 || keep == 0 && p.b.kind == logs && p.b.limit.CountRejected {
		return nil
	}
	back := change{b: p.b, key: p.key, act: giveBack, n: extra * p.cost, at: p.at}
	p.answer.left += back.n
	switch law := &p.b.bucket; p.b.kind {
	case buckets:
		p.answer.reset -= back.n * law.Em
		p.answer.left = max(0, (law.Tau-p.answer.reset)/law.Em-p.floor)
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
			back.n, back.handle = p.cost, p.handle.Copy(i)
			changes = append(changes, back)
		}
		return changes
	}
	return []change{back}
}
