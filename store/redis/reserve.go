package redis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"tidegate.dev/tidegate"
)

// reservation is the record of an estimate, kept in Redis until it is settled or its
// time is over. It lives beside the counters of a subject and is written by the script
// that charges them. A process that settles need not have the rules: the record has the limits.
type reservation struct {
	handle  tidegate.Handle
	ttl     time.Duration
	charges []charge
}

// charge is a check that was charged on an estimate.
type charge struct {
	Key   string       `json:"k"`
	Cost  int64        `json:"n"`
	Limit limitNumbers `json:"l"`
	// Check is its index among the checks of the script that wrote the record, which
	// knows when and whether it was charged; -1 means charged before that, at At.
	Check int   `json:"c"`
	At    int64 `json:"t,omitempty"` // ticks
	Due   int64 `json:"d,omitempty"` // ticks; when a turn that was booked comes
	// Former: it was charged to the former owner of the key, beside the present one.
	Former bool `json:"f,omitempty"`

	pending *pendingCheck
}

// limitNumbers are the numbers of a limit, without its names.
type limitNumbers struct {
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
	RawTime   bool               `json:"q,omitempty"`
	// Widest is read by nodes with the first format of buckets only: to them, a level above it
	// means that the clock was set back. It is so high that no level is.
	Widest int64 `json:"w"`
}

func limitNumbersOf(lim *compiledLimit) limitNumbers {
	l := lim.limit
	return limitNumbers{
		l.Algorithm, l.Events, l.Period, l.Burst, l.Parts, l.Ceiling, l.CountRejected,
		l.Calendar, l.Zone, l.Anchor, l.RawTime, tidegate.MaxCount,
	}
}

func (n *limitNumbers) compile() (*compiledLimit, error) {
	l, err := tidegate.NewLimit(tidegate.Spec{
		Algorithm: n.Algorithm, Events: n.Events, Period: n.Period, Burst: n.Burst, Parts: n.Parts, Ceiling: n.Ceiling,
		CountRejected: n.Rejected, Calendar: n.Calendar, Zone: n.Zone, Anchor: n.Anchor, RawTime: n.RawTime,
	})
	if err != nil {
		return nil, err
	}
	return newCompiledLimit("", l), nil
}

// maxTTL is the longest that a reservation is kept.
const maxTTL = 10 * 366 * 24 * time.Hour

// Reserve implements tidegate.Reserver.
func (s *Store) Reserve(ctx context.Context, checks []tidegate.Check, ttl time.Duration) (tidegate.Decision, error) {
	ctx, end := s.withDeadline(ctx)
	defer end()
	if ttl <= 0 {
		return tidegate.Decision{}, fmt.Errorf("redis: Reserve(ttl=%s): want a time to live", ttl)
	}
	pending, index, err := s.prepare(checks)
	if err != nil {
		return tidegate.Decision{}, err
	}
	rec := &reservation{handle: tidegate.NewHandle(), ttl: max(min(ttl, maxTTL), time.Microsecond)}
	for i := range checks {
		if j := index[i]; checks[i].Estimate && j >= 0 {
			rec.charges = append(rec.charges, charge{
				Key: pending[j].lim.original().name(checks[i].Key), Cost: checks[i].Cost, Limit: limitNumbersOf(pending[j].lim), pending: pending[j],
			})
		}
	}
	o := takeParams{copies: 1, handle: rec.handle, rec: rec}
	d, _, err := s.decide(ctx, pending, o)
	if err != nil || !d.OK {
		if err = s.failure("reserve", err); err != nil && !errors.Is(err, tidegate.ErrCannotAsk) {
			s.abandon(ctx, pending, o)
		}
		return d, err
	}
	last := pending
	if s.apart() && len(pending) > 0 {
		subjects := split(pending)
		last = subjects[len(subjects)-1].pending
	}
	d.Receipt.Handle, d.Receipt.Place = rec.handle, s.recordSlot(last)
	return d, nil
}

func (s *Store) recordKey(id string) string { return s.prefix + ":reservation:" + id }

// note writes into r when subjects that have already been asked were charged, and adds charges for their
// copies at former owners. Charges that those subjects did not make are dropped.
func (r *reservation) note(subjects []*subject) {
	if r == nil {
		return
	}
	for _, c := range r.charges { // those that are there now
		for _, sub := range subjects {
			if sub.of == nil || sub.err != nil {
				continue
			}
			if i := slices.Index(sub.of.pending, c.pending); i >= 0 {
				c.pending, c.Former = sub.pending[i], true
				r.charges = append(r.charges, c)
			}
		}
	}
	for i := range r.charges {
		for _, sub := range subjects {
			if c := &r.charges[i]; slices.Contains(sub.pending, c.pending) {
				c.Check, c.At, c.Due = -1, c.pending.at, c.pending.at+c.pending.answer.delay
			}
		}
	}
	r.charges = slices.DeleteFunc(r.charges, func(c charge) bool { return c.Check < 0 && c.pending.answer.got == 0 })
}

// text returns the record as it is stored beside the counters of the checks.
func (r *reservation) text(pending []*pendingCheck) (string, error) {
	for i := range r.charges {
		if c := &r.charges[i]; c.Check >= 0 {
			c.Check = slices.Index(pending, c.pending)
		}
	}
	text, err := json.Marshal(r.charges)
	return string(text), err
}

// maxActual is more than any counter holds, and what a record can say exactly.
const maxActual = 1 << 52

// Settle implements tidegate.Reserver. It reads the record, and then has one script
// delete it and make the changes, if it is still there. In a cluster and on shards, where
// other subjects are changed by scripts of their own, it can be repeated after an error until
// it has happened; see settleApart.
func (s *Store) Settle(ctx context.Context, r tidegate.Receipt, actual int64) error {
	ctx, end := s.withDeadline(ctx)
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
	at := s.home(s.recordKey(id))
	rec, err := s.readRecord(ctx, at, id)
	if before := s.formerOf(s.recordKey(id)); err == tidegate.ErrSettled && before != nil {
		at = before // it may have been written before the shards were changed
		rec, err = s.readRecord(ctx, at, id)
	}
	if err != nil {
		return err
	}
	if rec.settling {
		return s.settleApart(ctx, at, id, rec, actual)
	}
	here, elsewhere, former, err := s.settlement(rec, at, id, actual)
	if err != nil {
		return err
	}
	how := recordAction{key: s.recordKey(id), act: settleWhole, at: at}
	if len(elsewhere) > 0 {
		how.act, how.actual = settleBegin, actual
	}
	_, done, err := s.apply(ctx, here, how)
	switch {
	case err != nil:
		return err
	case done && len(elsewhere) == 0:
		forgetMarks(ctx, s.settleFormer(ctx, id, former))
		return nil
	case !done && len(elsewhere) == 0:
		return tidegate.ErrSettled
	case !done: // another call was first, or the time is over: read again how far it came
		if rec, err = s.readRecord(ctx, at, id); err != nil {
			return err
		}
		if !rec.settling {
			return tidegate.ErrSettled // records can be read for a second longer than they count
		}
	default:
		rec.settling, rec.actual = true, actual
	}
	return s.settleApart(ctx, at, id, rec, actual)
}
