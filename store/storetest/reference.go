package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"tidegate.dev/tidegate"
)

// reference is the Store that the others are compared with: slow, unbounded and
// plain. It is one map under one mutex, keeps lists of what was taken and
// counts them by the definitions of the algorithms. It shares no arithmetic with other
// stores, takes copies one by one, and finds by search when a refused request would pass.
type reference struct {
	now      func() time.Time
	mu       sync.Mutex
	counters map[[2]string]counter // by the limit's identity and the key
	records  map[tidegate.Handle]record
	lastName int64  // the highest receipt so far
	lastID   uint64 // of a reservation
}

// counter is the state of one key under one limit.
type counter interface {
	// ask returns what a request would be told; it charges nothing.
	ask(l *tidegate.Limit, now time.Time, q question) answer
	charge(l *tidegate.Limit, now time.Time, r receipt, cost int64)
	// giveBack returns a part of what was charged under the receipt at.
	giveBack(l *tidegate.Limit, now time.Time, at, cost int64)
	// force charges cost even if there is no room for it.
	force(l *tidegate.Limit, now time.Time, cost int64)
}

// receipt names a charge by the receipt of its grant and that of its copy.
type receipt struct {
	grant, copy int64
}

// question asks a counter for room for a cost, with a floor left below it, now or within
// maxWait.
type question struct {
	cost, floor int64
	maxWait     time.Duration
}

// need returns how much room there has to be, at most the largest int64.
func (q question) need() int64 {
	if q.cost > math.MaxInt64-q.floor {
		return math.MaxInt64
	}
	return q.cost + q.floor
}

type answer struct {
	ok                 bool
	remaining          int64
	retry, reset, wait time.Duration
}

// record is what a reservation charged as an estimate.
type record struct {
	at      int64
	charged []tidegate.Check
	ends    time.Time
}

func newReference(now func() time.Time) *reference {
	return &reference{now: now, counters: map[[2]string]counter{}, records: map[tidegate.Handle]record{}}
}

// counterLocked returns the counter of c, which it makes if there is none.
func (r *reference) counterLocked(c *tidegate.Check) counter {
	id := [2]string{c.Limit.Identity(), c.Key}
	held := r.counters[id]
	if held == nil {
		switch c.Limit.Algorithm {
		case tidegate.TokenBucket, tidegate.LeakyBucket:
			held = &bucket{}
		case tidegate.Concurrency:
			held = &leases{}
		case tidegate.SlidingLog, tidegate.SubWindows:
			held = &runs{parts: c.Limit.Parts}
		default:
			held = &tally{}
		}
		id[1] = strings.Clone(c.Key) // callers may reuse the memory of theirs
		r.counters[id] = held
	}
	return held
}

func (r *reference) Take(_ context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d, _, err := r.takeLocked(checks, n)
	return d, err
}

// takeLocked is Take. It also returns the checks that were charged for the last copy.
func (r *reference) takeLocked(checks []tidegate.Check, n int) (d tidegate.Decision, charged []tidegate.Check, err error) {
	if n <= 0 {
		return d, nil, fmt.Errorf("take %d copies: want at least 1", n)
	}
	for i := range checks {
		switch c := &checks[i]; {
		case c.Cost < 0:
			return d, nil, fmt.Errorf("take a cost of %d: want at least 0", c.Cost)
		case c.Floor < 0:
			return d, nil, fmt.Errorf("take above a floor of %d: want at least 0", c.Floor)
		case c.Limit.Algorithm == tidegate.Deny:
			return d, nil, fmt.Errorf("take from %s: an access rule counts nothing", c.Limit)
		case c.Advisory:
			c.Over = false
		}
	}
	now := r.now()
	at := r.nameLocked(now, checks)
	var granted int64
	var wait time.Duration
	for granted < int64(n) {
		verdict := r.verdictLocked(checks, now)
		if !verdict.OK {
			d = verdict
			break
		}
		if granted == 0 {
			wait = verdict.Wait
		}
		charged = r.chargeLocked(checks, now, receipt{at, at + granted})
		r.lastName = max(r.lastName, at+granted)
		granted++
		if len(charged) == 0 { // nothing changed, so the other copies get the same answer
			granted = int64(n)
		}
	}
	r.rejectLocked(checks, now, int64(n)-granted, &d)
	if granted == 0 {
		d.Receipt.At = at
		return d, nil, nil
	}
	d = r.stateLocked(checks, now)
	d.OK, d.Granted, d.Wait, d.Receipt.At = true, granted, wait, at
	return d, charged, nil
}

// nameLocked returns the receipt of a grant: the time in ticks, or later if slots are
// taken, which need a receipt that no other grant has.
func (r *reference) nameLocked(now time.Time, checks []tidegate.Check) int64 {
	name := ticks(now)
	for i := range checks {
		if checks[i].Limit.Algorithm == tidegate.Concurrency {
			return max(name, r.lastName+1)
		}
	}
	return name
}

func (r *reference) Adjust(_ context.Context, taken tidegate.Receipt, checks []tidegate.Check) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range checks {
		r.adjustLocked(taken.At, &checks[i], checks[i].Cost)
	}
	return nil
}

func (r *reference) adjustLocked(at int64, c *tidegate.Check, cost int64) {
	held, now := r.counterLocked(c), r.now()
	switch {
	case cost > 0:
		held.force(c.Limit, now, cost)
	case cost < 0:
		held.giveBack(c.Limit, now, at, -cost)
	}
}

func (r *reference) Renew(_ context.Context, taken tidegate.Receipt, checks []tidegate.Check) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	for i := range checks {
		held, ok := r.counterLocked(&checks[i]).(*leases)
		if !ok || !held.renew(checks[i].Limit, r.now(), taken.At) {
			err = tidegate.ErrLeaseLost
		}
	}
	return err
}

func (r *reference) Reserve(_ context.Context, checks []tidegate.Check, ttl time.Duration) (tidegate.Decision, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d, charged, err := r.takeLocked(checks, 1)
	if err != nil || !d.OK {
		return d, err
	}
	rec := record{at: d.Receipt.At, ends: r.now().Add(ttl)}
	for _, c := range charged {
		if c.Estimate {
			c.Key = strings.Clone(c.Key)
			rec.charged = append(rec.charged, c)
		}
	}
	r.lastID++
	d.Receipt.Handle = tidegate.Handle{0, r.lastID}
	r.records[d.Receipt.Handle] = rec
	return d, nil
}

func (r *reference) Settle(_ context.Context, taken tidegate.Receipt, actual int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec, ok := r.records[taken.Handle]
	delete(r.records, taken.Handle)
	if !ok || !r.now().Before(rec.ends) {
		return tidegate.ErrSettled
	}
	if actual < 0 {
		return errors.New("settle a negative cost")
	}
	for i := range rec.charged {
		c := &rec.charged[i]
		r.adjustLocked(rec.at+c.Limit.Turn(min(actual, c.Cost)), c, actual-c.Cost)
	}
	return nil
}

func (r *reference) Reset(_ context.Context, checks []tidegate.Check) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range checks {
		delete(r.counters, [2]string{checks[i].Limit.Identity(), checks[i].Key})
	}
	return nil
}
