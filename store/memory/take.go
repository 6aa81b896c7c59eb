package memory

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// Take implements tidegate.Store. It does not look at the context, which would cost
// more than the answer.
func (s *Store) Take(_ context.Context, checks []tidegate.Check, n int) (d tidegate.Decision, err error) {
	if n < 1 {
		return d, fmt.Errorf("memory: Take(n=%d): want at least 1", n)
	}
	if len(checks) != 1 || checks[0].Advisory {
		if n != 1 || !s.spendAll(&d, checks) {
			d, err = s.takeAll(checks, n)
		}
		runtime.KeepAlive(s) // pointers into mapped memory do not keep it alive
		return d, err
	}
	c := &checks[0]
	lim := s.compiled.find(c.Limit)
	if lim == nil || c.Floor != 0 {
		if lim, err = s.compileCheck(c); err != nil {
			return d, err
		}
	}
	k := s.hash.sum(c.Key, lim.salt)
	short := n == 1 && c.Cost > 0 && c.MaxWait <= 0
	if short && lim.hotBucket(k) && s.spendHot(&d, lim, k, c.Cost) {
		runtime.KeepAlive(s)
		return d, nil
	}
	if !short || !s.spend(&d, lim, k, c.Cost) {
		err = s.takeSingle(&d, lim, k, c.Cost, c.MaxWait, n)
	}
	runtime.KeepAlive(s)
	return d, err
}

// TakeOne implements tidegate.OneTaker.
func (s *Store) TakeOne(_ context.Context, key string, l *tidegate.Limit, cost int64, maxWait time.Duration) (d tidegate.Decision, err error) {
	lim := s.compiled.find(l)
	if lim == nil {
		if lim, err = s.compile(l); err != nil {
			return d, err
		}
	}
	k := s.hash.sum(key, lim.salt)
	short := cost > 0 && maxWait <= 0
	if short && lim.hotBucket(k) && s.spendHot(&d, lim, k, cost) {
		runtime.KeepAlive(s)
		return d, nil
	}
	if !short || !s.spend(&d, lim, k, cost) {
		err = s.takeSingle(&d, lim, k, cost, maxWait, 1)
	}
	runtime.KeepAlive(s)
	return d, err
}

// takeSingle decides one check, which spend could not decide, and writes the answer into d. The only
// error is that of a negative cost.
func (s *Store) takeSingle(d *tidegate.Decision, lim *compiledLimit, k keyHash, cost int64, maxWait time.Duration, n int) error {
	switch a := ask(cost, maxWait, n); {
	case cost < 0:
		return negativeCost(lim.limit, cost)
	case lim.kind.inRecord():
		s.takeOneRecord(d, lim, k, a)
	default:
		s.takeOne(d, lim, k, a)
	}
	return nil
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

// takeOne decides a single check whose state fits a slot: a refusal mostly writes
// nothing, an admission is one compare-and-swap. The clock is read after the
// state, so that nobody is refused for a charge from the future.
func (s *Store) takeOne(d *tidegate.Decision, lim *compiledLimit, k keyHash, a algo.Ask) {
	for attempt := 0; ; attempt++ {
		lim = s.current(lim)
		sl := lim.table.find(k)
		if sl == nil {
			if s.takeFirst(d, lim, k, a) {
				return
			}
			continue
		}
		old, word, ok := sl.read(k)
		if !ok {
			spin(attempt)
			continue
		}
		now := s.now()
		next, v := s.take(lim, old, now, a)
		if next == old { // refused or peeked: mostly nothing to write
			ok = sl.word.Load() == word
		} else {
			ok = sl.swap(word, k, old, next)
		}
		if ok {
			answer(d, lim.limit, v, now)
			return
		}
	}
}

// takeFirst decides for a key that was not found. It reports false when the key
// is there after all.
func (s *Store) takeFirst(d *tidegate.Decision, lim *compiledLimit, k keyHash, a algo.Ask) bool {
	now := s.now()
	next, v := s.take(lim, cell{}, now, a)
	answer(d, lim.limit, v, now)
	if v.Granted == 0 || a.Cost == 0 { // nothing to remember
		return v.Never() || !lim.table.holds(k)
	}
	inserted, ok := s.insert(lim, k, next, now)
	if !ok {
		s.full(d, lim, now)
	}
	return inserted || !ok
}

// answer fills in d from the verdict v about the limit l. A Decision is large and not
// returned by value: each copy costs as much as the arithmetic.
func answer(d *tidegate.Decision, l *tidegate.Limit, v algo.Verdict, at int64) {
	d.OK, d.Never = v.Granted > 0, v.Never() && v.Granted == 0
	d.Limit, d.Receipt.At = l, at
	d.Granted, d.Remaining = v.Granted, v.Remaining
	d.RetryAfter, d.ResetAfter, d.Wait = algo.Duration(v.Retry()), algo.Duration(v.Reset), algo.Duration(v.Wait())
}

// fullRetry is the RetryAfter for a key that found no room: it is not known when there will be
// room.
const fullRetry = time.Second

// full writes into d the refusal of a key that finds no room, or no memory for its record, and counts
// it.
func (s *Store) full(d *tidegate.Decision, lim *compiledLimit, now int64) {
	lim.table.refused.Add(1)
	answer(d, lim.limit, algo.Verdict{}, now)
	d.Err = tidegate.ErrFull
	d.RetryAfter = min(lim.limit.Period, fullRetry)
	if lim.limit.Algorithm == tidegate.Quota {
		d.RetryAfter = fullRetry
	}
	s.dropIfEmpty(lim.table) // there is no room for tables, either
}
