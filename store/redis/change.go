package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// change is one change of a counter other than a Take.
type change struct {
	lim *compiledLimit
	key string
	act act
	n   int64 // events
	at  int64 // when the events were taken, in ticks; -1 means the latest ones

	handle tidegate.Handle // of slots
	former bool            // it is made at the former owner of the key; see former.go
}

// act is what a change does, by the number it has in scripts.
type act byte

const (
	force act = 1 + iota
	giveBack
	renew
	reset
)

// latest is Receipt.At where nobody knows when something was charged; see
// tidegate.Receipt.Latest.
const latest = -1

// maxReturn is more than any counter holds, and what a script multiplies exactly.
const maxReturn = 1 << 40

// adjustment returns the change of an Adjust by cost, or false if there is nothing to do.
func adjustment(lim *compiledLimit, key string, at, cost int64) (change, bool) {
	switch {
	case cost > 0: // a debt is at most one capacity
		return change{lim: lim, key: key, act: force, n: min(cost, 2*lim.capacity), at: at}, true
	case cost < 0:
		return change{lim: lim, key: key, act: giveBack, n: min(-max(cost, -math.MaxInt64), maxReturn), at: at}, true
	}
	return change{}, false
}

// put puts a change into a request.
func (r *request) put(c *change, clock *clock) {
	var room [160]byte
	a := packer(room[:0])
	a.byte(byte(c.lim.kind))
	a.byte(byte(c.act))
	a.uint16(r.key(c.key))
	a.text(c.lim.id)
	a.int(c.n)
	if c.at == latest {
		a.int(latest)
		a.uint16(0)
	} else {
		a.ticks(max(c.at, 0))
	}
	var charged int64
	if c.act == giveBack && c.lim.kind == counters {
		charged = algo.SpanAt(c.lim.limit, max(c.at, 0)).Start
	}
	a.int(charged)
	var altKey uint16
	if c.lim.isRuns() {
		altKey = r.key(c.lim.altKey(c.key))
	}
	c.lim.law(&a, 0, c.lim.datesAround(clock), altKey)
	if c.lim.kind == leases {
		a.handle(c.handle)
	}
	if c.act != reset || c.lim.isRuns() {
		r.kinds.add(c.lim.kind)
	}
	r.args = append(r.args, string(a))
}

// apply makes changes in one place by one script, and does with a record what how says. done is
// false, and nothing has changed, if the state of that record forbids it. lost is how many leases
// could not be renewed because they had run out.
func (s *Store) apply(ctx context.Context, changes []change, how recordAction) (lost int64, done bool, err error) {
	// Those of the calendar go first: a script that misses bounds has written nothing.
	slices.SortStableFunc(changes, func(a, b change) int { return calendarFirst(a) - calendarFirst(b) })
	at := how.at
	switch {
	case at != nil:
	case how.act != settleNothing:
		at = s.home(how.key)
	default:
		at = s.whereOf(&changes[0])
	}
	for range maxMoves(len(changes)) {
		r := request{tag: s.tag()}
		var head packer
		head.number(float64(r.tag))
		head.number(s.clock.pretended())
		head.byte(byte(how.act))
		head.int(how.actual)
		head.int(int64(cmp.Or(how.life, how.act.life()) / time.Second))
		r.args = append(r.args, string(head))
		for i := range changes {
			r.put(&changes[i], &s.clock)
		}
		if how.act != settleNothing {
			r.keys = append(r.keys, how.key)
		}
		got, err := at.runNumbers(ctx, scriptFor(changeCharges, r.kinds), r.keys, r.args, r.tag)
		if err != nil {
			return 0, false, err
		}
		now, us, again, err := missed(got, slices.ContainsFunc(changes, change.calendar))
		if err != nil {
			return 0, false, err
		}
		i, n, moved, err := got.moved(len(changes))
		if err != nil {
			return 0, false, err
		}
		if moved {
			changes[i].move(n)
			continue
		}
		if !again {
			if err := got.validate(changes, how.act != settleNothing); err != nil {
				return 0, false, err
			}
			return got[2], got[0] == 1, nil
		}
		s.clock.sync(now)
		for _, c := range changes {
			c.lim.extendDates(now, us)
		}
	}
	return 0, false, errMissed
}

// calendarFirst returns a number that sorts changes of the calendar before all others.
func calendarFirst(c change) int {
	if c.calendar() {
		return 0
	}
	return 1
}

// place is where one script reaches all keys.
type place struct {
	tag    string
	former bool // the former owner of the tag
}

// byPlace sorts changes by where they are made.
func byPlace(changes []change) map[place][]change {
	apart := map[place][]change{}
	for _, c := range changes {
		at := place{tagOf(c.key), c.former}
		apart[at] = append(apart[at], c)
	}
	return apart
}

// whereOf returns the endpoint that a change is made at.
func (s *Store) whereOf(c *change) *endpoint {
	if c.former {
		return s.formerOf(c.key)
	}
	return s.home(c.key)
}

// applyAll is apply in any number of places, at the same time.
func (s *Store) applyAll(ctx context.Context, changes []change) (lost int64, err error) {
	if len(changes) == 0 {
		return 0, nil
	}
	if !s.apart() {
		lost, _, err = s.apply(ctx, changes, recordAction{})
		return lost, err
	}
	apart := byPlace(changes)
	type result struct {
		lost int64
		err  error
	}
	results := make(chan result, len(apart))
	for _, some := range apart {
		go func() {
			n, _, err := s.apply(ctx, some, recordAction{})
			results <- result{n, err}
		}()
	}
	for range apart {
		r := <-results
		lost += r.lost
		err = errors.Join(err, r.err)
	}
	return lost, err
}

// Adjust implements tidegate.Store. For a lease, a negative cost releases it. It is
// one script, or in a cluster and on shards one for each subject.
func (s *Store) Adjust(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	ctx, end := s.withDeadline(ctx)
	defer end()
	changes, former := make([]change, 0, len(checks)), []change(nil)
	for i := range checks {
		c := &checks[i]
		lim, err := s.compile(c.Limit)
		if err != nil {
			return err
		}
		lim = lim.asLastSeen()
		key := lim.name(c.Key)
		tag := tagOf(key)
		one, ok := adjustment(lim, key, chargedAt(r, tag), c.Cost)
		if one.handle = r.Handle; !ok || lim.kind == leases && r.Handle.IsZero() {
			continue
		}
		changes = append(changes, one)
		if s.formerOf(key) != nil {
			one.at = chargedAt(r, formerTag(tag), tag)
			former = append(former, one)
		}
	}
	err := s.besides(ctx, former, func() error {
		_, err := s.applyAll(ctx, changes)
		return err
	})
	return s.failure("adjust", err)
}

// Renew implements tidegate.Renewer.
func (s *Store) Renew(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	ctx, end := s.withDeadline(ctx)
	defer end()
	var changes []change
	for i := range checks {
		c := &checks[i]
		lim, err := s.compile(c.Limit)
		if err != nil {
			return err
		}
		if lim.kind == leases {
			key := lim.name(c.Key)
			changes = append(changes, change{lim: lim, key: key, act: renew, handle: r.Handle})
		}
	}
	lost, err := s.renewAll(ctx, changes)
	if err == nil && lost > 0 {
		return tidegate.ErrLeaseLost
	}
	return s.failure("renew", err)
}

// renewAll renews slots, and returns how many are lost. A slot that has moved is lost if its
// former owner has lost it as well: it may have been taken before the shards were changed.
func (s *Store) renewAll(ctx context.Context, changes []change) (lost int64, err error) {
	var stay, moved, former []change
	for _, c := range changes {
		at := s.formerOf(c.key)
		if at == nil || at.leftOut() {
			stay = append(stay, c)
			continue
		}
		moved = append(moved, c)
		c.former = true
		former = append(former, c)
	}
	lost, err = s.applyAll(ctx, stay)
	lostNow, errNow := s.applyAll(ctx, moved)
	lostBefore, errBefore := s.applyAll(ctx, former)
	if errBefore == nil {
		lostNow = min(lostNow, lostBefore)
	}
	return lost + lostNow, errors.Join(err, errNow)
}

// Reset implements tidegate.Resetter.
func (s *Store) Reset(ctx context.Context, checks []tidegate.Check) error {
	ctx, end := s.withDeadline(ctx)
	defer end()
	var changes []change
	for i := range checks {
		lim, err := s.compile(checks[i].Limit)
		if err != nil {
			return fmt.Errorf("redis: reset: %w", err)
		}
		one := change{lim: lim, key: lim.name(checks[i].Key), act: reset}
		changes = append(changes, one)
		if at := s.formerOf(one.key); at != nil && !at.leftOut() {
			one.former = true
			changes = append(changes, one)
		}
	}
	_, err := s.applyAll(ctx, changes)
	return s.failure("reset", err)
}
