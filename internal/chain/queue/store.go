// Package queue makes requests wait instead of refusing them. It is a
// [chain.Backend] around another: Take returns when it is the request's turn, first in
// first out per key, or at once when the wait would be too long or the queue is
// full.
//
// There are two kinds of queue. A bucket is booked ahead: the inner store says
// when the turn comes. A waiter that leaves early passes its turn to the next
// waiter, which passes its own to the one behind it, and so on; the last turn goes
// back to the store. For any other limit with [tidegate.Handling.Queue], only the
// first waiter asks again, when the limit said it would have room.
//
// Start with [New].
package queue

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
)

// Store is a [tidegate.Store] in which requests wait.
//
// Reservations do not wait.
type Store struct {
	chain.Backend
	turns   turns
	retries retryQueues
	next    *atomic.Bool // see Time; nil if nothing is timed
	took    func(time.Duration)
}

// New returns a Store that waits on behalf of inner.
func New(inner chain.Backend) *Store { return NewBy(inner, systemClock{}) }

// NewBy is New with turns that come by another clock than the machine's.
func NewBy(inner chain.Backend, c Clock) *Store {
	return &Store{Backend: inner, turns: turns{clock: c}}
}

// Take implements tidegate.Store. A request that waits for a booked turn has been charged
// to its other limits; one that waits for room has not. An ended ctx ends the wait.
func (s *Store) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	if c := queued(checks); c != nil && n == 1 {
		d, err := s.retries.take(ctx, timed{s}, checks, c)
		return s.awaitTurn(ctx, checks, d, err)
	}
	var start time.Time
	due := s.due()
	if due {
		start = time.Now()
	}
	d, err := s.Backend.Take(ctx, checks, n)
	if due {
		s.took(time.Since(start))
	}
	if err == nil && !d.OK && n == 1 {
		if c := drops(checks, &d); c != nil {
			return s.takeOver(ctx, checks, c, d)
		}
	}
	if n != 1 || d.Wait == 0 { // nearly all
		return d, err
	}
	return s.awaitTurn(ctx, checks, d, err)
}

// awaitTurn waits for the turn that was booked with d, if one was.
func (s *Store) awaitTurn(ctx context.Context, checks []tidegate.Check, d tidegate.Decision, err error) (tidegate.Decision, error) {
	if err != nil || !d.OK || d.Wait == 0 || !books(checks) {
		return d, err
	}
	defer recordWait(ctx, time.Now())()
	defer s.renewSlots(ctx, d.Receipt, checks)()
	c := booked(checks)
	waited, q, err := s.turns.wait(ctx, s.Backend, c, &d)
	if errors.Is(err, errDropped) {
		return s.dropped(ctx, q, without(checks, c), c, &d), nil
	}
	if err != nil {
		s.freeSlots(context.WithoutCancel(ctx), d.Receipt, checks)
		return tidegate.Decision{}, err
	}
	d.Wait, d.Waited, d.Queued = 0, waited, true
	return d, nil
}

// books reports whether one of checks may have booked a turn. One that costs nothing is only told when its turn would
// come.
func books(checks []tidegate.Check) bool {
	return slices.ContainsFunc(checks, func(c tidegate.Check) bool { return c.Cost > 0 && c.MaxWait > 0 })
}

// MaxBatch implements chain.Backend: requests that may wait are decided one by one.
func (s *Store) MaxBatch() int { return 1 }

// TakeBatch implements chain.Backend.
func (s *Store) TakeBatch(ctx context.Context, asks []chain.Ask) error {
	return chain.TakeEach(ctx, s, asks)
}

// queued returns the check whose queue the request would join, or nil.
func queued(checks []tidegate.Check) *tidegate.Check {
	for i := range checks {
		c := &checks[i]
		if !c.Advisory && !c.Unattended && c.Cost > 0 && c.Limit.Terms != nil && c.Limit.Terms.Handling.Queue != nil && !isBucket(c.Limit) {
			return c
		}
	}
	return nil
}

// booked returns the check that was booked ahead; nil if there are several, because it is then
// not known which of them has the turn.
func booked(checks []tidegate.Check) (one *tidegate.Check) {
	for i := range checks {
		c := &checks[i]
		if c.Advisory || c.MaxWait == 0 || c.Cost <= 0 || !isBucket(c.Limit) {
			continue
		}
		if one != nil {
			return nil
		}
		one = c
	}
	return one
}

func isBucket(l *tidegate.Limit) bool {
	return l.Algorithm == tidegate.TokenBucket || l.Algorithm == tidegate.LeakyBucket
}

// Waiting returns how many requests wait.
func (s *Store) Waiting() int64 { return s.turns.waiting.Load() + s.retries.waiting.Load() }

// queueID names the queue of a check: there is one per counter and floor. A request with a lower
// floor does not wait behind one with a higher floor.
type queueID struct {
	identity, key string
	floor         int64
	capacity      int64 // of the limit, if turns are not booked; otherwise 0
}

func queueOf(c *tidegate.Check) queueID {
	return queueID{identity: c.Limit.Identity(), key: c.Key, floor: c.Floor}
}
