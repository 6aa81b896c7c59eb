package rulefile

import (
	"fmt"
	"strings"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
)

// checkRule reports terms that are wrong only in combination, in r and in each of its branches, with
// those in expired, which have ended.
func (d *decoder) checkRule(r *Rule, expired []Branch) {
	d.checkTerms(r.Terms)
	d.checkMaxTime(r, r.Terms)
	for _, branches := range [][]Branch{r.For, expired} {
		for i := range branches {
			t := r.Under(&branches[i])
			d.checkTerms(t)
			d.checkMaxTime(r, t)
		}
	}
	if r.Candidate != nil {
		d.checkLimit(r.Candidate, Terms{Queue: r.Terms.Queue})
	}
}

// checkTerms reports what is wrong with t, all terms that apply to a request together.
func (d *decoder) checkTerms(t Terms) {
	if t.Limits != nil {
		seen := make(map[string]string)
		for i := range t.Limits.All {
			l := &t.Limits.All[i]
			limit := d.checkLimit(l, t)
			if limit == nil {
				continue
			}
			if text, twice := seen[limit.Identity()]; twice {
				d.fail(l.Pos, diag.Quote(l.Text)+" and "+diag.Quote(text)+" would be counted in the same counters", "keep the smaller one, or give one another period")
			}
			seen[limit.Identity()] = l.Text
		}
	}
	if q := t.Quota; q != nil && q.Spec.Events > 0 && q.Spec.Calendar != tidegate.NoCalendar {
		d.valid(q.Pos, q.Spec, "write "+diag.Quote(quotaPlace.example))
		d.checkAbove(q.Spec, fmt.Sprintf("%d/%s", q.Spec.Events, q.Spec.Calendar), t)
	}
	if c := t.Concurrency; c != nil && c.Spec.Events > 0 && c.Spec.Period > 0 {
		d.valid(c.Pos, c.Spec, concurrencyHint)
	}
}

// checkLimit checks l, which is one of the limits of t, against the other terms. It returns the limit
// with the largest number that l can have, or nil if l is not valid, which has been reported.
func (d *decoder) checkLimit(l *Limit, t Terms) *tidegate.Limit {
	if l.Spec.Algorithm == tidegate.LeakyBucket {
		if t.Queue == nil {
			d.fail(l.Pos, "a leaky bucket makes requests wait, and there is no `queue`", "write `queue: { places: 100, max_wait: 2s }` in the rule, or choose another algorithm")
			return nil
		}
		if t.Queue.Places == 0 {
			return nil // already reported
		}
	}
	if l.Spec.Burst > 0 && l.Spec.Algorithm != tidegate.TokenBucket && l.Spec.Algorithm != tidegate.LeakyBucket {
		// The algorithm was not known when the burst was read.
		why := "`burst` means nothing to " + l.Spec.Algorithm.String()
		if l.Auto {
			why = burstAlone
		}
		d.fail(l.burstPos, why, burstHint)
		return nil
	}
	if l.Spec.Algorithm == tidegate.SlidingLog && l.most() > tidegate.MaxLogEvents {
		d.fail(l.Pos, fmt.Sprintf("%s is more than a sliding log keeps, which is %d events per key", diag.Quote(l.Text), tidegate.MaxLogEvents),
			"write `algorithm: sub_windows`, with `ceiling: true` if it must never be over")
		return nil
	}
	var limit *tidegate.Limit
	for _, s := range l.specs() {
		if limit = d.valid(l.Pos, s, adviceFor(s.Algorithm)); limit == nil {
			return nil
		}
	}
	d.checkAbove(limit.Spec, l.Text, t)
	return limit
}

// adviceFor returns the hint for a limit whose numbers are not valid.
func adviceFor(a tidegate.Algorithm) string {
	switch a {
	case tidegate.TokenBucket:
		return "make the burst smaller or the period shorter, or use `quota: { amount: 10/month }`"
	case tidegate.LeakyBucket:
		return "make the queue or the period shorter"
	case tidegate.SubWindows:
		return "take fewer `parts`, or a longer period"
	}
	return "write `limits: 100/minute`"
}

// checkAbove checks `over` and `cost` of t against the limit s, which messages call text.
func (d *decoder) checkAbove(s tidegate.Spec, text string, t Terms) {
	top := s
	if t.Over != nil && (t.Over.Soft > 0 || t.Over.Elastic != nil && t.Over.Elastic.UpTo > 1) {
		top = t.Over.Ceiling(s)
		if _, err := tidegate.NewLimit(top); err != nil {
			d.fail(t.Over.Pos, "`over` raises "+diag.Quote(text)+" too far: "+sentence(err), "lower `over` or the limit")
			return
		}
		if top == s {
			d.warn(t.Over.Pos, "`over` adds nothing to "+diag.Quote(text)+", as what it admits is rounded down", "give more, such as `soft: 50%`, or take `over` out")
		}
	}
	if t.Over != nil && t.Over.MaxTime > 0 {
		timed := s
		timed.Terms = &tidegate.Terms{MaxOver: t.Over.MaxTime}
		if _, err := tidegate.NewLimit(timed); err != nil {
			d.fail(t.Over.Pos, "`max_time` cannot be used with "+diag.Quote(text)+": "+sentence(err), "take `max_time` out, or write the limit in a rule of its own")
			return
		}
	}
	c := t.Cost
	if c == nil {
		return
	}
	limit, err := tidegate.NewLimit(top)
	if err != nil {
		return
	}
	costs := []struct {
		word string
		n    int64
	}{{"a cost", c.Fixed}, {"the least cost", c.Min}, {"the cost `else`", c.Else}}
	for _, cost := range costs {
		if cost.n > limit.Capacity() {
			d.fail(c.Pos, fmt.Sprintf("%s of %d never fits into %s", cost.word, cost.n, diag.Quote(text)),
				fmt.Sprintf("raise the limit to at least %d, or lower the cost to at most %d", cost.n, limit.Capacity()))
			return
		}
	}
}

// valid returns the limit of s, or nil if s is not valid, which it reports.
func (d *decoder) valid(pos diag.Pos, s tidegate.Spec, hint string) *tidegate.Limit {
	l, err := tidegate.NewLimit(s)
	if err != nil {
		d.fail(pos, sentence(err), hint)
		return nil
	}
	return l
}

// sentence returns an error of NewLimit without the name, which is not set yet.
func sentence(err error) string { return strings.TrimPrefix(err.Error(), `limit "": `) }
