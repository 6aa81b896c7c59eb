package rls

import (
	"strconv"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// addHeaders tells clients about the descriptor that is closest to its limit, or of those that
// refuse the last.
func (s *Server) addHeaders(a *answer, c *call, now time.Time) {
	closest := -1
	for i := range c.descriptors {
		st := &a.statuses[i]
		switch d := &c.descriptors[i]; {
		case st.CurrentLimit == nil:
		case d.refused && (d.rule == nil || !d.rule.Quota):
			closest = i
		case closest < 0, !c.descriptors[closest].refused && st.LimitRemaining < a.statuses[closest].LimitRemaining:
			closest = i
		}
	}
	if closest < 0 {
		return
	}
	st, h := &a.statuses[closest], &s.o.Headers
	add := func(i int, name string, value uint64) {
		if name != "" {
			a.headers[i].Key, a.headers[i].Value = name, strconv.FormatUint(value, 10)
			a.response.ResponseHeadersToAdd = append(a.response.ResponseHeadersToAdd, (*core.HeaderValue)(&a.headers[i]))
		}
	}
	add(0, h.Limit, uint64(st.CurrentLimit.RequestsPerUnit))
	add(1, h.Remaining, uint64(st.LimitRemaining))
	add(2, h.Reset, uint64(st.DurationUntilReset.GetSeconds()))
}
