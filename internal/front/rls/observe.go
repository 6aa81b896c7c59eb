package rls

import "tidegate.dev/tidegate"

// observe tells metrics and logs what became of a call.
func (s *Server) observe(c *call) {
	var run *tidegate.Decision
	var n int64
	var told *descriptor // the one that Answered gets
	for i := range c.descriptors {
		d := &c.descriptors[i]
		if d.rule == nil || !d.asked { // the gate of Desk tells observers of its own decisions
			continue
		}
		if d.over == d.refused && (told == nil || d.decision.Outranks(&told.decision)) {
			told = d
		}
		if s.o.Stats != nil {
			s.o.Stats.Hits(c.domain, d.rule.Metric(d.entries), d.hitsOf())
		}
		if s.o.Each != nil && d.err == nil {
			s.o.Each(d.key, &d.decision, d.rule.Shadow || s.o.Shadow)
		}
		switch {
		case d.rule.Shadow:
			if s.o.Shadowed != nil && d.decision.Limit != nil { // nil if the client left before the store was asked
				s.o.Shadowed(d.decision.Limit, d.over)
			}
		case s.o.Counted == nil:
		case run != nil && alike(run, &d.decision):
			n++
		default:
			if n > 0 {
				s.o.Counted(run, n)
			}
			run, n = &d.decision, 1
		}
	}
	if n > 0 {
		s.o.Counted(run, n)
	}
	if s.o.Answered != nil && told != nil {
		s.o.Answered(told.key, &told.decision)
	}
}

// alike reports whether two decisions are counted as the same.
func alike(a, b *tidegate.Decision) bool {
	return a.Limit == b.Limit && a.Err == nil && b.Err == nil && a.OK == b.OK && a.Receipt.Origin == b.Receipt.Origin
}

// nearShare is the share of a limit above which hits are near it: the default of
// envoyproxy/ratelimit.
const nearShare = 0.8

// hitsOf returns what became of the hits of a descriptor. Of hits that are refused together, those
// that would have fit are not over the limit.
func (d *descriptor) hitsOf() (h Hits) {
	if d.negative {
		return h
	}
	hits, limit := uint64(d.cost), uint64(d.rule.RequestsPerUnit)
	near := uint64(nearShare * float64(limit))
	h.Total = hits
	if !d.over {
		h.Within = hits
		if after := limit - min(uint64(max(d.decision.Remaining, 0)), limit); after > near {
			h.Near = min(hits, after-near)
		}
		return h
	}
	fit := min(uint64(max(d.left, 0)), limit)
	h.Over = hits - min(fit, hits)
	if before := limit - fit; fit > 0 {
		h.Near = limit - max(near, before)
	}
	if d.decision.Receipt.Origin == tidegate.OriginRemembered {
		h.Remembered = hits
	}
	if d.rule.Shadow {
		h.Shadow = h.Over
	}
	return h
}
