package ledger

import (
	"math"
	"time"
)

// coverage is what is paid ahead for a node: a rate for every instant. Two epochs are never in use
// at the same time, so one payment covers both.
type coverage struct {
	parts  []part  // in order
	credit float64 // what was paid too much, as costs are whole tokens
}

// part is a rate that is paid until a time.
type part struct {
	perSecond float64
	until     time.Duration
}

// raise returns the coverage after a rate is paid from now until then, and the cost in whole
// tokens, plus extra.
func (c coverage) raise(perSecond float64, now, then time.Duration, extra int64) (coverage, int64) {
	var parts []part
	cost, at := 0.0, now
	for _, p := range c.parts {
		if p.until <= at {
			continue
		}
		if add := perSecond - p.perSecond; add > 0 && at < then {
			end := min(p.until, then)
			cost += add * (end - at).Seconds()
			parts = append(parts, part{perSecond, end})
			at = end
		}
		if p.until > at {
			parts = append(parts, p)
			at = p.until
		}
	}
	if at < then {
		cost += perSecond * (then - at).Seconds()
		parts = append(parts, part{perSecond, then})
	}
	cost -= c.credit
	whole := math.Ceil(max(cost, 0))
	return coverage{joined(parts), whole - cost}, int64(whole) + extra
}

// joined merges adjacent parts of the same rate.
func joined(parts []part) []part {
	kept := parts[:0]
	for _, p := range parts {
		if last := len(kept) - 1; last >= 0 && kept[last].perSecond == p.perSecond {
			kept[last].until = p.until
			continue
		}
		kept = append(kept, p)
	}
	return kept
}
