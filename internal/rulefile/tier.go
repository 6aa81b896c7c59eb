package rulefile

import (
	"fmt"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/diag"
)

// checkTiers tells of branches whose limits are counted apart from those of the
// rule that they replace: a change of tier would not keep what was used.
func (d *decoder) checkTiers(r *Rule) {
	base := r.Terms
	for i := range r.For {
		t := r.For[i].Terms
		if t.Limits != nil && base.Limits != nil {
			for j := range t.Limits.All {
				d.checkTier(&t.Limits.All[j], base.Limits.All)
			}
		}
		if q, other := t.Quota, base.Quota; q != nil && other != nil && q.Spec.Calendar == other.Spec.Calendar && apart(q.Spec, other.Spec) {
			name := func(s tidegate.Spec) string { return fmt.Sprintf("%d/%s", s.Events, s.Calendar) }
			d.warnApart(q.Pos, name(q.Spec), name(other.Spec), "write the same `zone` and `anchor` in both")
		}
	}
}

// checkTier finds the limit that l is in place of by its period.
func (d *decoder) checkTier(l *Limit, base []Limit) {
	var other *Limit
	for i := range base {
		if base[i].Spec.Period != l.Spec.Period {
			continue
		}
		if !apart(l.Spec, base[i].Spec) {
			return
		}
		other = &base[i]
	}
	if other != nil {
		d.warnApart(l.Pos, l.Text, other.Text, "write the same `algorithm`, and `parts`, in both")
	}
}

func (d *decoder) warnApart(pos diag.Pos, text, other, hint string) {
	d.warn(pos, quote(text)+" is counted apart from "+quote(other)+" of the rule, so a change of tier does not keep what was used", hint)
}

// apart reports whether both are limits and have counters of their own.
func apart(a, b tidegate.Spec) bool {
	la, errA := tidegate.NewLimit(a)
	lb, errB := tidegate.NewLimit(b)
	return errA == nil && errB == nil && la.Identity() != lb.Identity()
}
