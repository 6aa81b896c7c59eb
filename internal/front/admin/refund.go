package admin

import (
	"context"
	"net/http"

	"tidegate.dev/tidegate"
)

// maxRefundSteps bounds how often events of one counter are given back: an event in an earlier part
// of a window counts for less than one, so the first step may not make enough room.
const maxRefundSteps = 30

// refundKeys gives used events back to a caller.
func (s *server) refundKeys(r *http.Request) (any, operation, error) {
	var q Change
	if err := decode(r, &q); err != nil {
		return nil, operation{action: "refund"}, err
	}
	d := q.operation("refund")
	d.what = append(d.what, "events", q.Events)
	if q.Events < 1 || q.Events > tidegate.MaxCount {
		return nil, d, problemf(http.StatusBadRequest, "This does not say how many events to give back: events has to be at least 1 and at most %d, and is %d.", int64(tidegate.MaxCount), q.Events)
	}
	if err := checkReason(q.Reason); err != nil {
		return nil, d, err
	}
	if q.Preview {
		keys, err := s.preview(r.Context(), q.Question)
		for i := range keys.Counters {
			c := &keys.Counters[i]
			if c.Unknown == "" && refundable(c) {
				c.Refunded = min(q.Events, c.Capacity-c.Remaining)
			}
		}
		return keys, d, err
	}
	f, err := s.find(q.Question)
	if err != nil {
		return nil, d, err
	}
	found := f.found
	refunded := make([]int64, len(found))
	for i := range found {
		if !refundable(&found[i]) {
			continue
		}
		if refunded[i], err = s.refund(r.Context(), &found[i], q.Events); err != nil {
			return nil, d, problemf(http.StatusServiceUnavailable, "The store could not give back what %s has counted: %v.", found[i].Rule, err)
		}
	}
	d.what = append(d.what, "refunded", refunded)
	now, err := s.peek(r.Context(), q.Question)
	for i := range now.Counters {
		for j := range found {
			if found[j].same(&now.Counters[i]) {
				now.Counters[i].Refunded = refunded[j]
			}
		}
	}
	return now, d, err
}

// refundable reports whether events of a counter can be refunded. Slots are released by their
// holders, turns in a leaky bucket belong to waiting requests, and a block is ended by a reset.
func refundable(c *Counter) bool {
	a := c.check.Limit.Algorithm
	return a != tidegate.Concurrency && a != tidegate.LeakyBucket && c.Role != "blocks"
}

// refund gives back up to n events of a counter, the newest first, and returns how many. It
// never gives back more than was counted.
func (s *server) refund(ctx context.Context, c *Counter, n int64) (given int64, err error) {
	limit := c.check.Limit
	look := tidegate.Check{Key: c.check.Key, Limit: widened(limit)}
	before, err := s.peekOne(ctx, look)
	if err != nil {
		return 0, err
	}
	for range maxRefundSteps {
		used := look.Limit.Capacity() - before.Remaining
		if used <= 0 || given == n {
			break
		}
		give := tidegate.Check{Key: c.check.Key, Limit: limit, Cost: given - n}
		if err := s.Store.Adjust(ctx, before.Receipt.Latest(), []tidegate.Check{give}); err != nil {
			return given, err
		}
		if exact(limit) {
			return min(n, used), nil
		}
		after, err := s.peekOne(ctx, look)
		if err != nil {
			return n, err
		}
		found := min(after.Remaining-before.Remaining, n-given)
		if found <= 0 {
			break
		}
		given, before = given+found, after
	}
	return given, nil
}

// widened returns a limit of the same counter with three times the events, so that a peek also
// shows what is used beyond l. It returns l if there is no such limit, or if l is exact: a bucket of
// another size would be converted.
func widened(l *tidegate.Limit) *tidegate.Limit {
	if exact(l) {
		return l
	}
	spec := l.Spec
	spec.Events = min(3*spec.Events, tidegate.MaxCount)
	wide, err := tidegate.NewLimit(spec)
	if err != nil || wide.Identity() != l.Identity() {
		return l
	}
	return wide
}

func (s *server) peekOne(ctx context.Context, look tidegate.Check) (tidegate.Decision, error) {
	d, err := s.Store.Take(ctx, []tidegate.Check{look}, 1)
	if err == nil {
		err = d.Err
	}
	return d, err
}

// exact reports whether each refunded event makes room for exactly one.
func exact(l *tidegate.Limit) bool {
	switch l.Algorithm {
	case tidegate.SlidingLog, tidegate.SlidingWindow, tidegate.SubWindows:
		return false
	}
	return true
}
