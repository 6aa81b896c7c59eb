package memory

import (
	"container/heap"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// reservations are the estimates that wait to be settled.
type reservations struct {
	held  table // has no keys: accounts for their memory, which cannot be reclaimed
	mu    sync.Mutex
	byID  map[tidegate.Handle]reservation
	queue expiries // a heap, the first to expire at its front; swept from there
}

type reservation struct {
	size        int64 // charged to the budget
	at, expires int64
	charged     []charged
}

type charged struct {
	limit *tidegate.Limit
	key   keyHash
	cost  int64
	wait  int64 // until a turn that was booked comes
}

// Rough size of a reservation in its map and queue, charged to the budget.
const (
	reservationBytes = 192
	chargedBytes     = 48
)

// maxTTL keeps the end of a reservation from overflowing: 35 years in ticks.
const maxTTL = 1 << 60

// Reserve implements tidegate.Reserver. At the memory bound a reservation is
// refused with ErrFull rather than made and forgotten.
func (s *Store) Reserve(_ context.Context, checks []tidegate.Check, ttl time.Duration) (tidegate.Decision, error) {
	if ttl <= 0 {
		return tidegate.Decision{}, fmt.Errorf("memory: Reserve(ttl=%s): want a time to live", ttl)
	}
	size := sizeOf(len(checks))
	if !s.makeRoomFor(size) {
		return tidegate.Decision{Err: tidegate.ErrFull, Limit: first(checks), RetryAfter: fullRetry}, nil
	}
	pending := make([]pendingCheck, len(checks))
	d, err := s.decideAll(pending, checks, 1)
	runtime.KeepAlive(s)
	if err != nil || !d.OK {
		s.budget.giveBack(&s.reservations.held, size)
		return d, err
	}
	r := reservation{size: size, at: d.Receipt.At, expires: d.Receipt.At + min(algo.Ticks(ttl), maxTTL)}
	for i := range checks {
		// An advisory check may have been left out, a merged one is charged.
		if c, p := &checks[i], &pending[i]; c.Estimate && (p.verdict.Granted > 0 || !c.Advisory) {
			r.charged = append(r.charged, charged{limit: c.Limit, key: p.key, cost: c.Cost, wait: p.verdict.Wait()})
		}
	}
	d.Receipt.Handle, d.Receipt.Instance = s.reservations.add(r), s.instance
	return d, nil
}

func first(checks []tidegate.Check) *tidegate.Limit {
	if len(checks) == 0 {
		return nil
	}
	return checks[0].Limit
}

func sizeOf(checks int) int64 { return int64(reservationBytes + chargedBytes*checks) }

// makeRoomFor takes size out of the budget after sweeping what has expired.
func (s *Store) makeRoomFor(size int64) bool {
	now := s.clock.now()
	held := &s.reservations.held
	s.budget.giveBack(held, s.reservations.sweep(now))
	for range 2 {
		if !s.budget.rationed(held) && s.budget.spend(held, size) {
			return true
		}
		if !s.reclaim(held, 1+int(size/pageBytes), now, false) {
			return false
		}
	}
	return false
}

func (r *reservations) add(one reservation) tidegate.Handle {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID == nil {
		r.byID = make(map[tidegate.Handle]reservation)
	}
	id := tidegate.NewHandle()
	r.byID[id] = one
	heap.Push(&r.queue, expiry{one.expires, id})
	return id
}

// sweep forgets what has expired or was settled and returns the bytes freed.
func (r *reservations) sweep(now int64) (freed int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.queue) > 0 {
		id := r.queue[0].id
		one, ok := r.byID[id]
		if ok && one.expires > now {
			break
		}
		if ok {
			freed += one.size
			delete(r.byID, id)
		}
		heap.Pop(&r.queue)
	}
	return freed
}

func (r *reservations) take(id tidegate.Handle) (reservation, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one, ok := r.byID[id]
	delete(r.byID, id)
	if len(r.queue) > 2*len(r.byID)+64 { // most are settled, behind an old one that is not
		r.queue = slices.DeleteFunc(r.queue, func(e expiry) bool { _, open := r.byID[e.id]; return !open })
		heap.Init(&r.queue)
	}
	return one, ok
}

// Settle implements tidegate.Reserver.
func (s *Store) Settle(_ context.Context, r tidegate.Receipt, actual int64) error {
	if actual < 0 {
		return fmt.Errorf("memory: Settle(actual=%d): want 0 or more", actual)
	}
	if r.Instance != s.instance && !r.Handle.IsZero() {
		return tidegate.ErrElsewhere
	}
	one, ok := s.reservations.take(r.Handle)
	if !ok {
		return tidegate.ErrSettled
	}
	s.budget.giveBack(&s.reservations.held, one.size)
	now := s.now()
	if one.expires <= now {
		return tidegate.ErrSettled
	}
	for _, c := range one.charged {
		lim, err := s.compile(c.limit)
		if err != nil {
			return err
		}
		s.adjust(lim, c.key, now, one.at+c.wait+c.limit.Turn(min(actual, c.cost)), actual-c.cost)
	}
	runtime.KeepAlive(s)
	return nil
}
