package rules

import (
	"math"
	"sync/atomic"

	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// cost is what a request takes from each limit of a rule. The zero value is the cost that the front
// end gives; rules that say nothing share it.
type cost struct {
	fixed    int64
	reserve  []*identity // the first that is present, or the sum of all
	sum      bool
	fallback int64
	min, max int64
	settle   string
	estimate bool
}

var asRequested = new(cost)

func (c *compiler) cost(w *rulefile.Cost) *cost {
	if w == nil {
		return asRequested
	}
	made := &cost{fixed: w.Fixed, fallback: w.Else, sum: w.Sum, min: max(w.Min, 1), max: w.Max, settle: w.Settle}
	made.estimate = len(w.Reserve) > 0 || w.Settle != ""
	for _, s := range w.Reserve {
		made.reserve = append(made.reserve, c.ids.from(s))
	}
	return made
}

// of returns the cost of the request: at least 1, so that no request passes for free. A reserved
// cost outside min and max is moved to the nearest of them, and counted in clamped.
func (c *cost) of(st *state, h *hit, clamped *atomic.Int64) int64 {
	switch {
	case len(c.reserve) > 0:
		return c.reserved(st, h, clamped)
	case c.fixed > 0:
		return c.fixed
	}
	return max(st.request.Cost, 1)
}

// isRequests reports whether the cost is the one that the request brings.
func (c *cost) isRequests() bool { return len(c.reserve) == 0 && c.fixed == 0 }

func (c *cost) reserved(st *state, h *hit, clamped *atomic.Int64) int64 {
	n, ok := c.asked(st, h)
	if !ok {
		n = max(c.fallback, 1)
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

// asked returns the estimate that the request brings. Of a list, the first value that is present
// counts, even if it is not a number. In a sum, missing and negative values add nothing.
func (c *cost) asked(st *state, h *hit) (n int64, ok bool) {
	for _, id := range c.reserve {
		v, there := st.find(id, h)
		if !there {
			continue
		}
		one, isNumber := parseNumber(v.text)
		if !c.sum {
			return one, isNumber
		}
		if isNumber {
			n, ok = n+min(max(one, 0), math.MaxInt64-n), true
		}
	}
	return n, ok
}
