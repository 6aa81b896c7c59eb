package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"tidegate.dev/tidegate"
)

// checkShares holds a limit that is split to what docs/consistency.md says of the sum of all
// shares: Redis has no part in it, so that only clocks and the number of instances matter.
func (l *load) checkShares() (broken []string) {
	r, v := l.run, l.Versions[0]
	burst, all := float64(v.Capacity()), rate(v)*r.s.Lasts.Seconds()
	allowed := float64(l.Cost) * float64(r.s.Nodes+2) // turns, and what cannot be divided
	allowed += rate(v) * (2 * r.s.Skew).Seconds()
	if v.Algorithm != tidegate.TokenBucket {
		allowed += burst // windows of instances begin at other times
	}
	for _, f := range r.s.Faults {
		if f.Kind == Crash { // those who start know neither the others nor what was used
			allowed += float64(len(r.hit(f))) * (burst + all)
		}
	}
	for key, log := range l.logs {
		slices.SortFunc(log, func(a, b admission) int { return cmp.Compare(a.at, b.at) })
		law, worst, at := newLaw(l.Versions), 0.0, int64(0)
		for _, a := range log {
			if over := law.admit(a.at+r.start.UnixNano(), float64(l.Cost)); over > worst {
				worst, at = over, a.at
			}
		}
		if worst > allowed {
			broken = append(broken, fmt.Sprintf("%s, %s: the shares admit %.4g more than the limit at %s, want at most %.4g (%d admitted)",
				l.Name, l.keys[key], worst, time.Duration(at-r.clock(0)).Round(time.Microsecond), allowed, len(log)))
		}
	}
	return broken
}
