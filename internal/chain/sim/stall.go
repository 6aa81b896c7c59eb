package sim

import (
	"cmp"
	"slices"
)

// stall is the sum of stalls within a stretch of time: a connection stalls because a message was lost.
type stall struct {
	nodes   float64 // shares of the limit that instances had of their own because of stalls
	seconds float64 // the same, each multiplied by how long it lasted
}

// stalled adds up what stood still in a stretch of time. An instance that stands still has its share
// of the limit; one that has not heard of the others has all of it.
func (r *run) stalled(in Span) (sum stall) {
	in.To = min(in.To, r.s.Lasts)
	for _, l := range r.links {
		share := 1.0
		if l.known {
			share /= float64(r.s.Nodes)
		}
		if d := overlap(l.stood, in); d > 0 {
			sum.nodes += share
			sum.seconds += share * d
		}
	}
	return sum
}

// overlap returns how many seconds of in are also in one of all.
func overlap(all []Span, in Span) (sum float64) {
	all = slices.SortedFunc(slices.Values(all), func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	for _, s := range all {
		from, to := max(s.From, in.From), min(s.To, in.To)
		if from < to {
			sum += (to - from).Seconds()
			in.From = to
		}
	}
	return sum
}
