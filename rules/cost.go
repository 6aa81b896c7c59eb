package rules

import (
	"sync/atomic"

	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// cost is what a request takes from each limit of a rule. The zero value takes
// what the front end says.
type cost struct {
	fixed    int64
	reserve  *identity
	fallback int64
	min, max int64
	settle   string
	estimate bool
}

func (c *compiler) cost(w *rulefile.Cost) cost {
	if w == nil {
		return cost{}
	}
	made := cost{fixed: w.Fixed, fallback: w.Default, min: max(w.Min, 1), max: w.Max, settle: w.Settle}
	made.estimate = w.Reserve != nil || w.Settle != ""
	if w.Reserve != nil {
		made.reserve = c.ids.from(*w.Reserve)
	}
	return made
}

// of returns the cost of the request: never less than 1, so that nobody can look
// without paying. A reserve beyond its bounds is moved to them and counted.
func (c *cost) of(st *state, h *hit, clamped *atomic.Int64) int64 {
	switch {
	case c.reserve != nil:
		return c.reserved(st, h, clamped)
	case c.fixed > 0:
		return c.fixed
	}
	return max(st.request.Cost, 1)
}

// isRequests reports whether the cost is the one that the request has.
func (c *cost) isRequests() bool { return c.reserve == nil && c.fixed == 0 }

func (c *cost) reserved(st *state, h *hit, clamped *atomic.Int64) int64 {
	n := max(c.fallback, 1)
	if v, ok := st.find(c.reserve, h); ok {
		if asked, ok := parseNumber(v.text); ok {
			n = asked
		}
	}
	bounded := max(n, c.min)
	if c.max > 0 {
		bounded = min(bounded, c.max)
	}
	if bounded != n && !st.explains {
		clamped.Add(1)
	}
	return bounded
}
