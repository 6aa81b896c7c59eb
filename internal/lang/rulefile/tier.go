package rulefile

import (
	"fmt"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
)

// checkTiers warns about branches whose limits do not use the counters of the limits of the
// rule that they replace: a change of tier would not keep what was used.
func (d *decoder) checkTiers(r *Rule) {
	if len(r.For) == 0 {
		return
	}
	base := r.Terms
	limits := newTierBase(base.Limits)
	for i := range r.For {
		t := r.For[i].Terms
		if t.Limits != nil {
			for j := range t.Limits.All {
				d.checkTier(&t.Limits.All[j], limits)
			}
		}
		if q, other := t.Quota, base.Quota; q != nil && other != nil && q.Spec.Calendar == other.Spec.Calendar && apart(q.Spec, other.Spec) {
			name := func(s tidegate.Spec) string { return fmt.Sprintf("%d/%s", s.Events, s.Calendar) }
			d.warnApart(q.Pos, name(q.Spec), name(other.Spec), "write the same `zone` and `anchor` in both")
		}
	}
}

// tierBase is the limits of a rule by period.
type tierBase map[time.Duration]*tierPeriod

// tierPeriod is the limits of a rule that have the same period.
type tierPeriod struct {
	last     *Limit
	counters map[string]bool // identities of their counters
	unsure   bool            // one of them is not valid, which was reported
}

func newTierBase(l *Limits) tierBase {
	base := make(tierBase)
	if l == nil {
		return base
	}
	for i := range l.All {
		limit := &l.All[i]
		p := base[limit.Spec.Period]
		if p == nil {
			p = &tierPeriod{counters: make(map[string]bool)}
			base[limit.Spec.Period] = p
		}
		p.last = limit
		if made, err := tidegate.NewLimit(limit.Spec); err == nil {
			p.counters[made.Identity()] = true
		} else {
			p.unsure = true
		}
	}
	return base
}

// checkTier warns if l, a limit of a branch, does not use the counters of a limit of base with the
// same period.
func (d *decoder) checkTier(l *Limit, base tierBase) {
	p := base[l.Spec.Period]
	if p == nil || p.unsure {
		return
	}
	if made, err := tidegate.NewLimit(l.Spec); err == nil && !p.counters[made.Identity()] {
		d.warnApart(l.Pos, l.Text, p.last.Text, "write the same `algorithm`, and `parts`, in both")
	}
}

func (d *decoder) warnApart(pos diag.Pos, text, other, hint string) {
	d.warn(pos, diag.Quote(text)+" is counted apart from "+diag.Quote(other)+" of the rule, so a change of tier does not keep what was used", hint)
}

// apart reports whether both are valid limits and do not share counters.
func apart(a, b tidegate.Spec) bool {
	la, errA := tidegate.NewLimit(a)
	lb, errB := tidegate.NewLimit(b)
	return errA == nil && errB == nil && la.Identity() != lb.Identity()
}
