package rls

import (
	"context"
	"sync"
	"time"

	"tidegate.dev/tidegate"
)

// decide asks about all descriptors of a call, each by itself.
func (s *Server) decide(ctx context.Context, c *call) {
	if s.o.Far {
		s.decideFar(ctx, c)
		return
	}
	for i := range c.descriptors {
		if d := &c.descriptors[i]; d.counted() {
			s.one(ctx, d)
		}
	}
}

// decideFar asks about all descriptors at the same time, but about those of one counter in order.
func (s *Server) decideFar(ctx context.Context, c *call) {
	var all sync.WaitGroup
	last := -1 // asked by this goroutine, which would only wait
	for i := range c.descriptors {
		if c.descriptors[i].counted() && c.firstOf(i) {
			if last >= 0 {
				first := last
				all.Go(func() { s.inOrder(ctx, c, first) })
			}
			last = i
		}
	}
	if last >= 0 {
		s.inOrder(ctx, c, last)
	}
	all.Wait()
}

// firstOf reports whether no descriptor before i has the same counters.
func (c *call) firstOf(i int) bool {
	for j := range i {
		if c.sameCounter(i, j) {
			return false
		}
	}
	return true
}

func (c *call) sameCounter(i, j int) bool {
	a, b := &c.descriptors[i], &c.descriptors[j]
	return b.counted() && a.key == b.key && a.rule.Limits[0].Identity() == b.rule.Limits[0].Identity()
}

// inOrder asks about a descriptor, and then about those with the same counters.
func (s *Server) inOrder(ctx context.Context, c *call, first int) {
	defer s.recovered(func(err error) { c.descriptors[first].err = err })
	for i := first; i < len(c.descriptors); i++ {
		if d := &c.descriptors[i]; i == first || d.counted() && c.sameCounter(i, first) {
			s.one(ctx, d)
		}
	}
}

// one decides about one descriptor.
func (s *Server) one(ctx context.Context, d *descriptor) {
	d.asked = true
	switch rule := d.rule; {
	case denies(d):
		d.decision = tidegate.Decision{Never: true, Limit: rule.Limits[0], Receipt: tidegate.Receipt{Origin: tidegate.OriginRule}}
	case d.negative && d.cost > 0:
		s.giveBack(ctx, d)
	case d.cost == 0:
		s.peek(ctx, d)
	default:
		s.take(ctx, d, d.cost)
		if !d.decision.OK && d.err == nil && (rule.CountRejected || rule.Settle) {
			s.chargeRefused(ctx, d)
		}
	}
	d.over = !d.decision.OK && d.err == nil
}

// denies reports whether the rule of a descriptor admits nothing.
func denies(d *descriptor) bool {
	for _, l := range d.rule.Limits {
		if l.Algorithm == tidegate.Deny {
			return true
		}
	}
	return false
}

// take asks the store about a descriptor at a cost.
func (s *Server) take(ctx context.Context, d *descriptor, cost int64) {
	limits := d.rule.Limits
	if l := limits[0]; len(limits) == 1 && s.o.Near != nil && !layered(l) {
		d.decision, d.err = s.o.Near.TakeOne(ctx, d.key, l, cost, 0)
		return
	}
	checks := s.checks(d, cost)
	d.decision, d.err = s.o.Store.Take(ctx, *checks, 1)
	s.putChecks(checks)
}

// shared reports whether every hit is counted where all instances see it.
func shared(l *tidegate.Limit) bool {
	return l.Terms == nil || l.Terms.Handling.Consistency == tidegate.Strict
}

// layered reports whether a layer before the counters of this process handles a limit.
func layered(l *tidegate.Limit) bool {
	return l.Terms != nil && l.Terms.Handling.Consistency == tidegate.Split
}

// checks returns the vector of a descriptor.
func (s *Server) checks(d *descriptor, cost int64) *[]tidegate.Check {
	checks := s.vectors.Get().(*[]tidegate.Check)
	for _, l := range d.rule.Limits {
		*checks = append(*checks, tidegate.Check{Key: d.key, Limit: l, Cost: cost, Unattended: true})
	}
	return checks
}

func (s *Server) putChecks(checks *[]tidegate.Check) {
	clear(*checks)
	*checks = (*checks)[:0]
	s.vectors.Put(checks)
}

// chargeRefused charges hits that were refused, for rules that count those as well, and for rules
// that settle, which then admit them. A rule that does not settle charges nothing for a refusal
// that is remembered: the first one was charged, and the window is over its limit.
func (s *Server) chargeRefused(ctx context.Context, d *descriptor) {
	if d.decision.Receipt.Origin == tidegate.OriginRemembered && !d.rule.Settle {
		d.decision.Remaining = 0
		return
	}
	d.left = d.decision.Remaining
	checks := s.checks(d, d.cost)
	defer s.putChecks(checks)
	// If the store does not answer, they are not charged.
	_ = s.o.Store.Adjust(ctx, d.decision.Receipt, *checks)
	d.decision.Remaining = 0
	if d.rule.Settle {
		d.decision.OK, d.decision.Never, d.decision.RetryAfter = true, false, 0
	}
}

// peek looks without charging. A window of envoyproxy/ratelimit that is just full is not over
// its limit: that takes one hit more.
func (s *Server) peek(ctx context.Context, d *descriptor) {
	limits := d.rule.Limits
	if !d.rule.CountRejected || len(limits) != 1 || limits[0].Algorithm != tidegate.FixedWindow || !shared(limits[0]) {
		s.take(ctx, d, 0)
		return
	}
	above := s.above.of(limits[0])
	if above == nil {
		s.take(ctx, d, 0)
		return
	}
	check := [1]tidegate.Check{{Key: d.key, Limit: above, Unattended: true}}
	d.decision, d.err = s.o.Store.Take(ctx, check[:], 1)
	d.decision.Remaining = max(0, d.decision.Remaining-1)
	d.decision.Limit = limits[0]
}

// giveBack returns hits, those that were counted last.
func (s *Server) giveBack(ctx context.Context, d *descriptor) {
	if s.take(ctx, d, 0); d.err != nil {
		return
	}
	checks := s.checks(d, -d.cost)
	err := s.o.Store.Adjust(ctx, d.decision.Receipt.Latest(), *checks)
	s.putChecks(checks)
	if err == nil {
		s.take(ctx, d, 0)
	}
	// Nothing is asked for, so nothing is refused.
	d.decision.OK, d.decision.Never, d.decision.RetryAfter = true, false, 0
}

// nextLimits caches, for limits, those with one event more on the same counters.
type nextLimits struct {
	mu  sync.RWMutex
	all map[*tidegate.Limit]*tidegate.Limit
}

// maxNextLimits bounds the cache, which is emptied when it is full: it may have limits of rules that are
// gone.
const maxNextLimits = 4096

// of returns the limit of one event more than l; nil if there is none.
func (a *nextLimits) of(l *tidegate.Limit) *tidegate.Limit {
	a.mu.RLock()
	above, ok := a.all[l]
	a.mu.RUnlock()
	if ok {
		return above
	}
	spec := l.Spec
	spec.Events++
	above, _ = tidegate.NewLimit(spec) // nil at the bound of what can be counted
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all == nil || len(a.all) >= maxNextLimits {
		a.all = make(map[*tidegate.Limit]*tidegate.Limit)
	}
	a.all[l] = above
	return above
}

// resetOf returns how long it is until the counter of a descriptor is as good as new: of a window,
// until it ends, used or not. 0 means now, or that there is no counter.
func resetOf(d *descriptor, now time.Time) time.Duration {
	l := d.decision.Limit
	switch {
	case l == nil:
		return 0
	case d.decision.ResetAfter > 0 || d.decision.RetryAfter > 0:
		return max(d.decision.ResetAfter, d.decision.RetryAfter)
	case l.Algorithm == tidegate.FixedWindow || l.Algorithm == tidegate.Deny:
		period := l.Period
		if period == 0 && d.rule != nil {
			period = d.rule.Unit.Period()
		}
		if period == 0 {
			return 0
		}
		return untilNext(period, now)
	}
	return 0
}

const (
	week = 7 * 24 * time.Hour
	// firstMonday is when the first week of the epoch began, which began on a Thursday.
	firstMonday = 4 * 24 * time.Hour
)

// untilNext returns how long it is until the next window of a period begins. Weeks begin on Mondays.
func untilNext(period time.Duration, now time.Time) time.Duration {
	at := now.UnixNano()
	if period%week == 0 {
		at -= int64(firstMonday)
	}
	return period - time.Duration(at%int64(period))
}
