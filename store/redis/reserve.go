package redis

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"tidegate.dev/tidegate"
)

// reservation is the record of an estimate, kept in Redis until it is settled or its
// time is over. It lives beside the counters of a subject and is written by the script
// that charges them. Whoever settles need not know the rules: the record has the limits.
type reservation struct {
	handle  tidegate.Handle
	ttl     time.Duration
	charges []charge
}

// charge is a check that was charged on an estimate.
type charge struct {
	Key   string  `json:"k"`
	Cost  int64   `json:"n"`
	Limit numbers `json:"l"`
	// Check is its place among the checks of the script that wrote the record, which
	// knows when and whether it was charged; -1: charged before that, at At.
	Check int   `json:"c"`
	At    int64 `json:"t,omitempty"` // ticks
	Due   int64 `json:"d,omitempty"` // ticks; when a turn that was booked comes

	plan *plan
}

// numbers are what a limit asks, without its names.
type numbers struct {
	Algorithm tidegate.Algorithm `json:"a"`
	Events    int64              `json:"e"`
	Period    time.Duration      `json:"p,omitempty"`
	Burst     int64              `json:"b,omitempty"`
	Parts     int                `json:"s,omitempty"`
	Ceiling   bool               `json:"m,omitempty"`
	Rejected  bool               `json:"r,omitempty"`
	Calendar  tidegate.Calendar  `json:"c,omitempty"`
	Zone      string             `json:"z,omitempty"`
	Anchor    int                `json:"o,omitempty"`
	// Widest is read by nodes of the first format of buckets: more than that, they
	// take for a clock that was set back. This way they do not.
	Widest int64 `json:"w"`
}

func numbersOf(b *bound) numbers {
	l := b.limit
	return numbers{
		l.Algorithm, l.Events, l.Period, l.Burst, l.Parts, l.Ceiling, l.CountRejected,
		l.Calendar, l.Zone, l.Anchor, tidegate.MaxCount,
	}
}

func (n *numbers) bound() (*bound, error) {
	l, err := tidegate.NewLimit(tidegate.Spec{
		Algorithm: n.Algorithm, Events: n.Events, Period: n.Period, Burst: n.Burst, Parts: n.Parts, Ceiling: n.Ceiling,
		CountRejected: n.Rejected, Calendar: n.Calendar, Zone: n.Zone, Anchor: n.Anchor,
	})
	if err != nil {
		return nil, err
	}
	return newBound("", l, &family{l.Identity()}), nil
}

// maxTTL is a time that everything here can count.
const maxTTL = 10 * 366 * 24 * time.Hour

// Reserve implements tidegate.Reserver.
func (s *Store) Reserve(ctx context.Context, checks []tidegate.Check, ttl time.Duration) (tidegate.Decision, error) {
	ctx, end := s.within(ctx)
	defer end()
	if ttl <= 0 {
		return tidegate.Decision{}, fmt.Errorf("redis: Reserve(ttl=%s): want a time to live", ttl)
	}
	plans, index, err := s.plan(checks)
	if err != nil {
		return tidegate.Decision{}, err
	}
	rec := &reservation{handle: tidegate.NewHandle(), ttl: max(min(ttl, maxTTL), time.Microsecond)}
	for i := range checks {
		if j := index[i]; checks[i].Estimate && j >= 0 {
			rec.charges = append(rec.charges, charge{
				Key: plans[j].b.home().name(checks[i].Key), Cost: checks[i].Cost, Limit: numbersOf(plans[j].b), plan: plans[j],
			})
		}
	}
	d, _, err := s.decide(ctx, plans, order{copies: 1, handle: rec.handle, rec: rec})
	if err != nil || !d.OK {
		return d, s.failure("reserve", err)
	}
	last := plans
	if s.cluster && len(plans) > 0 {
		subjects := split(plans)
		last = subjects[len(subjects)-1].plans
	}
	d.Receipt.Handle, d.Receipt.Place = rec.handle, s.placeOf(last)
	return d, nil
}

func (s *Store) recordKey(id string) string { return s.prefix + ":reservation:" + id }

// note says when the charges of subjects that have granted were made.
func (r *reservation) note(subjects []*subject) {
	if r == nil {
		return
	}
	for i := range r.charges {
		for _, sub := range subjects {
			if c := &r.charges[i]; slices.Contains(sub.plans, c.plan) {
				c.Check, c.At, c.Due = -1, c.plan.at, c.plan.at+c.plan.answer.other
			}
		}
	}
	r.charges = slices.DeleteFunc(r.charges, func(c charge) bool { return c.Check < 0 && c.plan.answer.got == 0 })
}

// text is the record as it is kept beside the counters of plans.
func (r *reservation) text(plans []*plan) (string, error) {
	for i := range r.charges {
		if c := &r.charges[i]; c.Check >= 0 {
			c.Check = slices.Index(plans, c.plan)
		}
	}
	text, err := json.Marshal(r.charges)
	return string(text), err
}

// maxActual is more than any counter holds, and what a record can say exactly.
const maxActual = 1 << 52

// Settle implements tidegate.Reserver. It reads the record, and then has one script
// delete it and make the changes, if it is still there. In a cluster, where other
// subjects are changed by scripts of their own, it can be repeated after an error until
// it has happened; see settleApart.
func (s *Store) Settle(ctx context.Context, r tidegate.Receipt, actual int64) error {
	ctx, end := s.within(ctx)
	defer end()
	if actual < 0 {
		return fmt.Errorf("redis: Settle(actual=%d): want 0 or more", actual)
	}
	switch {
	case r.Handle.IsZero():
		return tidegate.ErrSettled
	case r.Instance != 0 || r.Origin != tidegate.OriginStore:
		return tidegate.ErrElsewhere
	}
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	err := s.settle(ctx, s.recordID(r.Handle, r.Place), min(actual, maxActual))
	if err == tidegate.ErrSettled {
		return err
	}
	return s.failure("settle", err)
}

func (s *Store) settle(ctx context.Context, id string, actual int64) error {
	rec, err := s.readRecord(ctx, id)
	if err != nil {
		return err
	}
	if rec.settling {
		return s.settleApart(ctx, id, rec, actual)
	}
	here, elsewhere, err := s.settlement(rec, id, actual)
	if err != nil {
		return err
	}
	how := settling{key: s.recordKey(id), act: settleWhole}
	if len(elsewhere) > 0 {
		how.act, how.actual = settleBegin, actual
	}
	_, done, err := s.apply(ctx, here, how)
	switch {
	case err != nil:
		return err
	case done && len(elsewhere) == 0:
		return nil
	case !done && len(elsewhere) == 0:
		return tidegate.ErrSettled
	case !done: // somebody was quicker: what is left of it says what to do
		if rec, err = s.readRecord(ctx, id); err != nil {
			return err
		}
	default:
		rec.settling, rec.actual = true, actual
	}
	return s.settleApart(ctx, id, rec, actual)
}
