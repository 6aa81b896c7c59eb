package rulefile

import (
	"slices"
	"time"

	"tidegate.dev/tidegate"
)

// Under returns what a request is held to where branch b holds. If b is nil, these are
// the rule's own terms.
func (r *Rule) Under(b *Branch) Terms {
	t := r.Terms
	if b == nil {
		return t
	}
	if b.Whole {
		t = b.Terms
		t.Limits = t.Limits.inLine(t.Queue)
		return t
	}
	if b.Terms.Limits != nil {
		t.Limits = b.Terms.Limits
	}
	if b.Terms.Quota != nil {
		t.Quota = b.Terms.Quota
	}
	if b.Terms.Concurrency != nil {
		t.Concurrency = b.Terms.Concurrency
	}
	if b.Terms.Over != nil {
		t.Over = b.Terms.Over
	}
	if b.Terms.Cost != nil {
		t.Cost = b.Terms.Cost
	}
	if b.Terms.Queue != nil {
		t.Queue = b.Terms.Queue
		t.Limits = t.Limits.inLine(t.Queue)
	}
	return t
}

// queueUnder returns the Queue of Under(b).
func (r *Rule) queueUnder(b *Branch) *Queue {
	if b.Whole || b.Terms.Queue != nil {
		return b.Terms.Queue
	}
	return r.Terms.Queue
}

// inLine returns a copy of l in which setLine(q) was called on each limit. If l or q is nil,
// it returns l.
func (l *Limits) inLine(q *Queue) *Limits {
	if l == nil || q == nil {
		return l
	}
	to := *l
	to.All = slices.Clone(l.All)
	for i := range to.All {
		to.All[i].setLine(q)
	}
	return &to
}

// setLine sets the Burst of a leaky bucket to the places of its queue: its burst is the line in
// which requests wait.
func (l *Limit) setLine(q *Queue) {
	if l.Spec.Algorithm == tidegate.LeakyBucket && q != nil {
		l.Spec.Burst = q.Places
	}
}

// settle decides what is still open in the limits of r: the line of leaky
// buckets, and the algorithm of limits that name none: what `consistency` asks for, or
// else what suits the number of events. Those of one period get one algorithm in all
// branches, so that a change of tier keeps its counters.
func (r *Rule) settle(expired []Branch) {
	open := make([]*Limit, 0, 4)
	large, unfit := make(map[time.Duration]bool), make(map[time.Duration]bool)
	mayBucket := r.Shares() != tidegate.Strict // otherwise unfit is not needed
	collect := func(t Terms, q *Queue) {
		r.Queues = r.Queues || t.Queue != nil
		if t.Limits == nil {
			return
		}
		for i := range t.Limits.All {
			l := &t.Limits.All[i]
			l.setLine(q)
			if l.Spec.Algorithm == tidegate.Auto {
				l.Auto, open = true, append(open, l)
				large[l.Spec.Period] = large[l.Spec.Period] || l.most() > tidegate.AutoLogEvents
				unfit[l.Spec.Period] = unfit[l.Spec.Period] || mayBucket && !l.canBeBucket()
			}
		}
	}
	collect(r.Terms, r.Terms.Queue)
	for _, branches := range [][]Branch{r.For, expired} {
		for i := range branches {
			collect(branches[i].Terms, r.queueUnder(&branches[i]))
		}
	}
	if l := r.Candidate; l != nil {
		// It is counted apart from the others, so its algorithm depends on itself only.
		l.setLine(r.Terms.Queue)
		if l.Spec.Algorithm == tidegate.Auto {
			l.Auto, l.Spec.Algorithm = true, r.auto(l.most() > tidegate.AutoLogEvents, !l.canBeBucket())
		}
	}
	for _, l := range open {
		l.Spec.Algorithm = r.auto(large[l.Spec.Period], unfit[l.Spec.Period])
	}
}

// auto returns the algorithm of limits that name none. large means that one of them has more
// events than AutoLogEvents; unfit means that a bucket cannot have the numbers of one.
func (r *Rule) auto(large, unfit bool) tidegate.Algorithm {
	switch c := r.Shares(); {
	case c == tidegate.Eventual:
		return tidegate.SubWindows
	case c != tidegate.Strict && !unfit:
		return tidegate.TokenBucket
	case large:
		return tidegate.SubWindows
	}
	return tidegate.SlidingLog
}

// canBeBucket reports whether a token bucket can have the numbers of l.
func (l *Limit) canBeBucket() bool {
	for _, s := range l.specs() {
		s.Algorithm = tidegate.TokenBucket
		if _, err := tidegate.NewLimit(s); err != nil {
			return false
		}
	}
	return true
}

// most returns the largest number that the limit can have.
func (l *Limit) most() int64 {
	if l.From != nil {
		return l.From.Max
	}
	return l.Spec.Events
}

// specs returns the limits to check: the one written or, if the number comes from the caller,
// those with the least, the default and the largest number, which is the last.
func (l *Limit) specs() []tidegate.Spec {
	if l.From == nil {
		return []tidegate.Spec{l.Spec}
	}
	least, most := l.Spec, l.Spec
	least.Events, most.Events = 1, l.From.Max
	return []tidegate.Spec{least, l.Spec, most}
}
