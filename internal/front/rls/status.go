package rls

import (
	"math"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/desk"
	"tidegate.dev/tidegate/rules/envoy"
)

// answer is a response with the memory of its parts. The zero value is ready.
type answer struct {
	response  pb.RateLimitResponse
	statuses  []pb.RateLimitResponse_DescriptorStatus
	limits    []pb.RateLimitResponse_RateLimit
	durations []durationpb.Duration
	headers   [4]core.HeaderValue
	refs      []*pb.RateLimitResponse_DescriptorStatus
}

// room makes memory for n statuses, which are empty.
func (a *answer) room(n int) {
	if cap(a.statuses) < n {
		a.statuses = make([]pb.RateLimitResponse_DescriptorStatus, n)
		a.limits = make([]pb.RateLimitResponse_RateLimit, n)
		a.durations = make([]durationpb.Duration, n)
		a.refs = make([]*pb.RateLimitResponse_DescriptorStatus, n)
		for i := range a.refs {
			a.refs[i] = &a.statuses[i]
		}
	}
	a.statuses, a.response.Statuses = a.statuses[:n], a.refs[:n]
}

// reset forgets everything but the memory.
func (a *answer) reset() {
	if cap(a.statuses) > keptDescriptors {
		*a = answer{}
		return
	}
	for i := range a.statuses {
		st, l := &a.statuses[i], &a.limits[i]
		st.Code, st.CurrentLimit, st.LimitRemaining, st.DurationUntilReset = 0, nil, 0, nil
		l.RequestsPerUnit, l.Unit, l.Name = 0, 0, ""
	}
	r := &a.response
	r.OverallCode, r.Statuses, r.ResponseHeadersToAdd, r.DynamicMetadata = 0, nil, nil, nil
}

// answer writes into a what was decided about c.
func (s *Server) answer(a *answer, c *call, now time.Time) {
	a.room(len(c.descriptors))
	r := &a.response
	for i := range c.descriptors {
		a.tell(&c.descriptors[i], i, now)
	}
	r.OverallCode = c.overall()
	if s.o.Shadow {
		r.OverallCode = pb.RateLimitResponse_OK
	}
	if s.o.Headers.any() {
		s.addHeaders(a, c, now)
	}
	if r.OverallCode == pb.RateLimitResponse_OVER_LIMIT {
		s.addSlip(a, c)
	}
	if s.o.Metadata != NoMetadata {
		r.DynamicMetadata = s.metadata(c)
	}
}

// overall returns OVER_LIMIT if a descriptor that is not in quota mode is refused, or if there are
// some in quota mode and all are refused.
func (c *call) overall() pb.RateLimitResponse_Code {
	quotas, over := 0, 0
	for i := range c.descriptors {
		d := &c.descriptors[i]
		switch {
		case d.quota():
			quotas++
			if d.refused {
				over++
			}
		case d.refused:
			return pb.RateLimitResponse_OVER_LIMIT
		}
	}
	if quotas > 0 && quotas == over {
		return pb.RateLimitResponse_OVER_LIMIT
	}
	return pb.RateLimitResponse_OK
}

// quota reports whether a descriptor is in quota mode: it refuses a call only together with all others
// that are.
func (d *descriptor) quota() bool {
	return d.rule != nil && d.rule.Quota && !d.rule.Unlimited && !d.replaced
}

// tell writes the status of descriptor i.
func (a *answer) tell(d *descriptor, i int, now time.Time) {
	st := &a.statuses[i]
	st.Code = pb.RateLimitResponse_OK
	if d.refused {
		st.Code = pb.RateLimitResponse_OVER_LIMIT
	}
	switch {
	case d.rule != nil && d.rule.Unlimited:
		st.LimitRemaining = math.MaxUint32
		return
	case d.rule != nil && d.counted():
		requests, unit := d.rule.Told(d.decision.Limit)
		l := &a.limits[i]
		l.RequestsPerUnit, l.Unit, l.Name = requests, pb.RateLimitResponse_RateLimit_Unit(unit), d.rule.Name
		st.CurrentLimit = l
		if d.decision.Err == nil {
			st.LimitRemaining = clamp(d.decision.Remaining)
		}
	case d.rule == nil && d.decision.Limit != nil:
		a.tellNative(d, i)
	default:
		return
	}
	a.durations[i].Seconds = seconds(resetOf(d, now))
	st.DurationUntilReset = &a.durations[i]
}

// tellNative writes what a native rule decided.
func (a *answer) tellNative(d *descriptor, i int) {
	rule, capacity, remaining, ok := desk.Told(&d.decision)
	l := &a.limits[i]
	l.Name = rule
	if ok {
		l.RequestsPerUnit, l.Unit = clamp(capacity), unitOf(d.decision.Limit)
		a.statuses[i].LimitRemaining = clamp(remaining)
	}
	a.statuses[i].CurrentLimit = l
}

// unitOf returns the unit whose period a limit has; UNKNOWN if there is none.
func unitOf(l *tidegate.Limit) pb.RateLimitResponse_RateLimit_Unit {
	for u := envoy.Second; u <= envoy.Week; u++ {
		if u.Period() == l.Period {
			return pb.RateLimitResponse_RateLimit_Unit(u)
		}
	}
	return pb.RateLimitResponse_RateLimit_UNKNOWN
}

func clamp(n int64) uint32 { return uint32(min(max(n, 0), math.MaxUint32)) }

// seconds returns d in whole seconds, rounded up: a client that waits for that long must not come too
// early.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
