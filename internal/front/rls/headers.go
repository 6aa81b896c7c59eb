package rls

import (
	"strconv"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
)

// addHeaders adds the headers that tell the client about one descriptor: the last in the list that
// refuses, quota_mode aside, or else the one with the least left.
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

// addSlip adds the slip of the refusal; nothing if the call is not refused, or has none.
func (s *Server) addSlip(a *answer, c *call) {
	text := s.slipOf(c.refusedBy())
	if text == "" {
		return
	}
	h := &a.headers[len(a.headers)-1] // the others are of addHeaders
	h.Key, h.Value = httplimit.SlipHeader, text
	a.response.ResponseHeadersToAdd = append(a.response.ResponseHeadersToAdd, (*core.HeaderValue)(h))
}

// refusedBy returns the descriptor that refuses a call, or nil. Of several, it is the one that the
// client has to wait for longest; those of quota_mode only if there are no others.
func (c *call) refusedBy() (by *descriptor) {
	for i := range c.descriptors {
		d := &c.descriptors[i]
		switch {
		case !d.refused:
		case by == nil, by.quota() && !d.quota(), by.quota() == d.quota() && d.decision.Outranks(&by.decision):
			by = d
		}
	}
	return by
}

// slipOf returns the slip of a descriptor that refuses; "" if there is none.
func (s *Server) slipOf(d *descriptor) string {
	switch {
	case d == nil:
		return ""
	case d.rule == nil:
		return d.slip
	case s.o.Slip == nil:
		return ""
	}
	return s.o.Slip([]tidegate.Check{{Key: d.key, Limit: d.decision.Limit}}, &d.decision)
}
