package eventual

import (
	"context"
	"time"

	"tidegate.dev/tidegate/internal/chain"
)

// exchangeTime bounds a call of the shared store.
const exchangeTime = 500 * time.Millisecond

// exchange exchanges the counts of some counters, in as many calls as that takes.
func (s *Store) exchange(some []*counter) {
	if s.clock.due() && !s.compareClocks() {
		s.isAway(some)
		return
	}
	for len(some) > 0 {
		n := min(len(some), chain.MaxTallies)
		if !s.exchangeSome(some[:n]) {
			s.isAway(some[n:])
			return
		}
		some = some[n:]
	}
}

// compareClocks compares the clock with the shared one, and reports whether the store has answered.
func (s *Store) compareClocks() bool {
	ctx, cancel := context.WithTimeout(context.Background(), exchangeTime)
	defer cancel()
	first, err := s.clock.compare(ctx, s.o.Tallies)
	if err == nil && first != 0 {
		s.shift(first)
	}
	return err == nil
}

// exchangeSome is exchange for as many counters as one call takes. It reports whether the store has
// answered.
func (s *Store) exchangeSome(some []*counter) bool {
	ctx, cancel := context.WithTimeout(context.Background(), exchangeTime)
	defer cancel()
	counters, tallies := make([]*counter, 0, len(some)), make([]chain.Tally, 0, len(some))
	q, began := &s.queue, s.elapsed()
	q.since.Store(int64(began))
	for _, c := range some {
		c.mu.Lock()
		if c.queued && !c.gone {
			c.queued, c.urgent = false, false
			counters = append(counters, c)
			tallies = append(tallies, c.tallyLocked(s.o.Region, began, s.o.Interval, s.clock.now().UnixMicro()))
		}
		c.mu.Unlock()
	}
	if len(tallies) == 0 {
		return true
	}
	if err := s.o.Tallies.Exchange(ctx, tallies); err != nil {
		s.isAway(counters)
		return false
	}
	for i, c := range counters {
		if tallies[i].Err != nil {
			s.unanswered(c)
			continue
		}
		s.heard(c, &tallies[i])
	}
	q.trip.Store(int64(s.elapsed() - began))
	q.away.Store(false)
	return true
}

// heard updates a counter and the memory store by the answer to a tally, and wakes those who wait
// for it.
func (s *Store) heard(c *counter, t *chain.Tally) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wakeLocked()
	if c.gone || c.instance != t.Instance { // evicted, reset or handed over meanwhile
		return
	}
	us := s.clock.now().UnixMicro()
	c.failed = 0
	c.heardLocked(t, us)
	s.recountLocked(c, us)
	if t.Answer.Generation > t.Generation {
		s.enqueueLocked(c, soon)
	}
}

// wakeLocked wakes those who wait for an answer.
func (c *counter) wakeLocked() {
	if c.answered != nil {
		close(c.answered)
		c.answered = nil
	}
}

// isAway notes that the store has not answered about some counters.
func (s *Store) isAway(some []*counter) {
	s.queue.away.Store(true)
	for _, c := range some {
		s.unanswered(c)
	}
}

// unanswered notes that a counter got no answer. It takes part in the next exchange again if there is
// something to send.
func (s *Store) unanswered(c *counter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wakeLocked()
	if c.gone {
		return
	}
	was := c.queued
	c.queued, c.urgent, c.failed = false, false, s.elapsed()
	if was || c.told == 0 || c.unsentLocked(s.clock.now().UnixMicro()) > 0 {
		s.queue.missed = true
		s.enqueueLocked(c, inTime)
	}
}

// shift moves what was counted before the first comparison of clocks to the windows of the shared
// clock, which is ahead by so much of that of this instance.
func (s *Store) shift(ahead time.Duration) {
	s.table.each(func(c *counter) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.number > 0 { // it was taken over, and named by the shared clock
			return
		}
		was := c.counts
		c.counts = nil
		for _, one := range was {
			middle := (one.start + one.end) / 2
			c.atLocked(windowAt(c.limit, max(middle+ahead.Microseconds(), 0))).own += one.own
		}
		s.recountLocked(c, s.clock.now().UnixMicro())
	})
}
