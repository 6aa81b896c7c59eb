package storetest

import (
	"errors"
	"slices"
	"time"

	"tidegate.dev/tidegate"
)

// used returns how many events all versions together count now, by the definition of the
// algorithm; -1 where only bounds are known: of buckets, whose versions drain at paces of
// their own, of logs that are read in parts, and after the clock was set back.
func (r *rollout) used() int64 {
	if r.bucket() || r.skewed {
		return -1
	}
	p, now := r.kind.period(), r.real
	later := now.Add(step)
	within := func(from, to time.Time) (sum int64) { // from included, to not
		for _, a := range slices.Backward(r.admitted) {
			if a.at.Before(from) {
				break
			}
			if a.at.Before(to) {
				sum += a.cost
			}
		}
		return sum
	}
	switch r.kind.spec.Algorithm {
	case tidegate.FixedWindow, tidegate.Quota:
		return within(now.Truncate(p), later)
	case tidegate.SlidingWindow:
		start := now.Truncate(p)
		if r.kind.spec.Ceiling {
			return within(start.Add(-p), later)
		}
		return within(start, later) + weighed(within(start.Add(-p), start), now.Sub(start), p)
	case tidegate.SubWindows:
		part := p / time.Duration(r.kind.spec.Parts)
		start := now.Truncate(part)
		if r.kind.spec.Ceiling {
			return within(start.Add(-p), later)
		}
		return within(start.Add(part-p), later) + weighed(within(start.Add(-p), start.Add(part-p)), now.Sub(start), part)
	case tidegate.SlidingLog:
		if slices.ContainsFunc(r.versions, func(l *tidegate.Limit) bool { return l.Parts > 0 }) {
			return -1
		}
		return within(now.Add(step-p), later)
	}
	return r.held()
}

// weighed returns what counts of a span of which some has left the window.
func weighed(count int64, gone, span time.Duration) int64 {
	return count * int64(span-gone) / int64(span)
}

// held returns how many slots are in use.
func (r *rollout) held() (sum int64) {
	for _, a := range r.admitted {
		if a.ends.After(r.clock.now()) {
			sum += a.cost
		}
	}
	return sum
}

// counts wants d, of so many events asked for under l when so many were used, to be what
// the definition says.
func (r *rollout) counts(l *tidegate.Limit, used, cost int64, d *tidegate.Decision) {
	if used < 0 || d.Never {
		return
	}
	left := l.Capacity() - used
	if fits := max(cost, 1) <= left; d.OK != fits {
		r.Errorf("%d used of %s, %d asked for: %s", used, l, cost, show(*d))
		return
	}
	if d.OK {
		left -= cost
	}
	if d.Remaining != max(left, 0) {
		r.Errorf("%d used of %s, %d asked for: %s, want %d left", used, l, cost, show(*d), max(left, 0))
	}
}

// changeSlots gives slots back or renews them, under whatever version and by whatever node.
func (r *rollout) changeSlots(node int) {
	if r.kind.spec.Algorithm != tidegate.Concurrency || len(r.admitted) == 0 {
		return
	}
	s := subject{T: r.T, store: r.nodes[node]}
	a := &r.admitted[r.rand.IntN(len(r.admitted))]
	held := a.ends.After(r.clock.now())
	if r.rand.IntN(2) == 0 && s.canRenew() {
		err := s.renew(a.receipt, check(r.force[node], r.key, a.cost))
		if lost := errors.Is(err, tidegate.ErrLeaseLost); !r.skewed && (err != nil || !held) && lost == held {
			r.Errorf("the lease that ends at %s is renewed at %s: %v", a.ends, r.clock.now(), err)
		}
		if held && err == nil {
			a.ends = r.clock.now().Add(r.kind.period())
		}
		return
	}
	s.adjust(a.receipt, check(r.force[node], r.key, -a.cost))
	a.ends = time.Time{}
}
