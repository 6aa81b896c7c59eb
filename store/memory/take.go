package memory

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// Take implements tidegate.Store. A context that has ended makes no
// difference: the answer costs less than the look.
func (s *Store) Take(_ context.Context, checks []tidegate.Check, n int) (d tidegate.Decision, err error) {
	if n < 1 {
		return d, fmt.Errorf("memory: Take(n=%d): want at least 1", n)
	}
	if len(checks) != 1 || checks[0].Advisory {
		if n != 1 || !s.spendAll(&d, checks) {
			d, err = s.takeAll(checks, n)
		}
		runtime.KeepAlive(s) // whoever decides may hold pointers that do not keep it
		return d, err
	}
	c := &checks[0]
	b, err := s.bind(c.Limit)
	if err != nil {
		return d, err
	}
	k := s.hash.sum(c.Key, b.table.salt)
	if !b.plain || n != 1 || c.Cost <= 0 || c.MaxWait > 0 || !s.spend(&d, b, k, c.Cost) {
		d, err = s.takeSingle(b, k, c.Cost, c.MaxWait, n)
	}
	runtime.KeepAlive(s)
	return d, err
}

// TakeOne implements tidegate.OneTaker.
func (s *Store) TakeOne(_ context.Context, key string, l *tidegate.Limit, cost int64, maxWait time.Duration) (d tidegate.Decision, err error) {
	b, err := s.bind(l)
	if err != nil {
		return d, err
	}
	k := s.hash.sum(key, b.table.salt)
	if !b.plain || cost <= 0 || maxWait > 0 || !s.spend(&d, b, k, cost) {
		d, err = s.takeSingle(b, k, cost, maxWait, 1)
	}
	runtime.KeepAlive(s)
	return d, err
}

// takeSingle decides one check that spend could not.
func (s *Store) takeSingle(b *bound, k keyHash, cost int64, maxWait time.Duration, n int) (tidegate.Decision, error) {
	switch a := ask(cost, maxWait, n); {
	case cost < 0:
		return tidegate.Decision{}, negativeCost(b.limit, cost)
	case b.kind.inRecord():
		return s.takeOneRecord(b, k, a), nil
	default:
		return s.takeOne(b, k, a), nil
	}
}

func ask(cost int64, maxWait time.Duration, n int) algo.Ask {
	a := algo.Ask{Cost: cost, Copies: int64(n)}
	if maxWait > 0 {
		a.MaxWait = algo.Ticks(maxWait)
	}
	return a
}

func negativeCost(l *tidegate.Limit, cost int64) error {
	return fmt.Errorf("memory: Take(%s): cost is %d; use Adjust to return", l, cost)
}

// takeOne decides a single check whose state fits a slot: a refusal writes
// nothing, an admission is one compare-and-swap. The clock is read after the
// state, so that nobody is refused for a charge from the future.
func (s *Store) takeOne(b *bound, k keyHash, a algo.Ask) tidegate.Decision {
	for turn := 0; ; turn++ {
		b = s.current(b)
		sl := b.table.find(k)
		if sl == nil {
			if d, ok := s.takeFirst(b, k, a); ok {
				return d
			}
			continue
		}
		old, word, ok := sl.read(k)
		if !ok {
			spin(turn)
			continue
		}
		now := s.now()
		next, v := s.take(b, old, now, a)
		if next == old { // refused or peeked: mostly nothing to write
			ok = sl.word.Load() == word
		} else {
			ok = sl.swap(word, k, old, next)
		}
		if ok {
			return decision(b.limit, &v, now)
		}
	}
}

// takeFirst decides for a key that was not found. It reports false when the key
// is there after all.
func (s *Store) takeFirst(b *bound, k keyHash, a algo.Ask) (tidegate.Decision, bool) {
	now := s.now()
	next, v := s.take(b, cell{}, now, a)
	if v.Granted == 0 || a.Cost == 0 { // nothing to remember
		return decision(b.limit, &v, now), v.Never || !b.table.holds(k)
	}
	inserted, ok := s.insert(b, k, next, now)
	if !ok {
		return s.full(b, now), true
	}
	return decision(b.limit, &v, now), inserted
}

// fullRetry is when a key that found no room may try again: there is no telling
// when there will be.
const fullRetry = time.Second

// full is the answer to a new key that finds no room.
func (s *Store) full(b *bound, now int64) tidegate.Decision {
	b.table.refused.Add(1)
	d := decision(b.limit, &algo.Verdict{}, now)
	d.Err = tidegate.ErrFull
	d.RetryAfter = min(b.limit.Period, fullRetry)
	if b.limit.Algorithm == tidegate.Quota {
		d.RetryAfter = fullRetry
	}
	return d
}
