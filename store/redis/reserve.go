package redis

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// reservation is the record of an estimate, kept in Redis until it is settled or its
// time is over. It lives beside the counters of a subject and is written by the script
// that charges them. Whoever settles need not know the rules: the record has the limits.
type reservation struct {
	secret  string // not to be guessed: who has it can settle
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
	Widest    int64              `json:"w"`
}

func numbersOf(b *bound) numbers {
	l := b.limit
	return numbers{
		l.Algorithm, l.Events, l.Period, l.Burst, l.Parts, l.Ceiling, l.CountRejected,
		l.Calendar, l.Zone, l.Anchor, b.family.widest.Load(),
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
	f := new(family)
	f.widen(n.Widest)
	return newBound("", l, f), nil
}

// maxTTL is a time that everything here can count.
const maxTTL = 10 * 366 * 24 * time.Hour

// Reserve implements tidegate.Reserver.
func (s *Store) Reserve(ctx context.Context, checks []tidegate.Check, ttl time.Duration) (tidegate.Decision, string, error) {
	if ttl <= 0 {
		return tidegate.Decision{}, "", fmt.Errorf("redis: Reserve(ttl=%s): want a time to live", ttl)
	}
	plans, index, err := s.plan(checks)
	if err != nil {
		return tidegate.Decision{}, "", err
	}
	rec := &reservation{secret: rand.Text(), ttl: max(min(ttl, maxTTL), time.Microsecond)}
	for i := range checks {
		if j := index[i]; checks[i].Estimate && j >= 0 {
			rec.charges = append(rec.charges, charge{Key: plans[j].key, Cost: checks[i].Cost, Limit: numbersOf(plans[j].b), plan: plans[j]})
		}
	}
	d, _, err := s.decide(ctx, plans, order{copies: 1, rec: rec})
	if err != nil || !d.OK {
		return d, "", failure("reserve", err)
	}
	last := plans
	if s.cluster && len(plans) > 0 {
		subjects := split(plans)
		last = subjects[len(subjects)-1].plans
	}
	return d, rec.id(last), nil
}

// id is by which a record kept beside the counters of plans is found.
func (r *reservation) id(plans []*plan) string {
	tag := "="
	if len(plans) > 0 {
		tag = tagOf(plans[0].key)
	}
	return r.secret + "{" + tag + "}"
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

// Settle implements tidegate.Reserver. It reads the record, and then has one script
// delete it and make the changes, if it is still there. In a cluster, counters of other
// subjects follow after that.
func (s *Store) Settle(ctx context.Context, id string, actual int64) error {
	if actual < 0 {
		return fmt.Errorf("redis: Settle(actual=%d): want 0 or more", actual)
	}
	if !strings.HasSuffix(id, "}") || tagOf(id) == "" {
		return tidegate.ErrSettled // never one of ours
	}
	client, err := s.link.get(ctx)
	if err != nil {
		return failure("settle", err)
	}
	key := s.recordKey(id)
	text, err := client.Do(ctx, client.B().Get().Key(key).Build()).ToString()
	if rueidis.IsRedisNil(err) {
		return tidegate.ErrSettled
	}
	if err != nil {
		return failure("settle", err)
	}
	changes, err := settlement(text, actual)
	if err != nil {
		return failure("settle", err)
	}
	var here, elsewhere []change
	for _, c := range changes {
		if !s.cluster || tagOf(c.key) == tagOf(id) {
			here = append(here, c)
		} else {
			elsewhere = append(elsewhere, c)
		}
	}
	_, done, err := s.apply(ctx, here, key)
	if err == nil && !done {
		return tidegate.ErrSettled
	}
	if err == nil {
		_, err = s.applyAll(ctx, elsewhere)
	}
	return failure("settle", err)
}

// settlement is what makes the charges of a record the actual ones.
func settlement(text string, actual int64) ([]change, error) {
	const numbers = 5 * 8
	if len(text) < numbers+2 {
		return nil, errRecord
	}
	n, err := parseReply(text[:numbers])
	if err != nil {
		return nil, errRecord
	}
	at := n[1]*algo.Micro + n[2]
	due := at + n[3]*algo.Micro + n[4]
	checks := int(text[numbers]) | int(text[numbers+1])<<8
	text = text[numbers+2:]
	if len(text) < checks {
		return nil, errRecord
	}
	paid, text := text[:checks], text[checks:]
	var charges []charge
	if err := json.Unmarshal([]byte(text), &charges); err != nil {
		return nil, errRecord
	}
	var changes []change
	for _, c := range charges {
		if c.Check >= 0 {
			if c.Check >= checks || paid[c.Check] != '1' {
				continue // an advisory check that had no room
			}
			c.At, c.Due = at, due
		}
		b, err := c.Limit.bound()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errRecord, err)
		}
		if b.kind == buckets {
			c.At = c.Due
		}
		if one, ok := adjustment(b, c.Key, c.At, actual-c.Cost); ok {
			changes = append(changes, one)
		}
	}
	return changes, nil
}
