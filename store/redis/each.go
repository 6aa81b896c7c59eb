package redis

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// mostAtOnce is how many checks one call decides: it keeps all others waiting for about
// a third of a millisecond.
const mostAtOnce = 32

// AtOnce is how many checks TakeEach is for. In a cluster that is 1, since keys are in
// different places there.
func (s *Store) AtOnce() int {
	if s.cluster {
		return 1
	}
	return mostAtOnce
}

// TakeEach decides about checks that have nothing to do with each other in one round
// trip: copies[i] of checks[i], by itself, as TakeShort does. The answers are put into
// granted[i] and rest[i]; where there is none, granted[i].Err says why. Checks of one
// algorithm share a call of a script, which takes Redis up to half less than a call for each.
// Checks that advise, and slots, have to be taken by Take.
func (s *Store) TakeEach(ctx context.Context, checks []tidegate.Check, copies []int, granted, rest []tidegate.Decision) error {
	l := letters.Get().(*letter)
	defer l.done()
	l.asks = slices.Grow(l.asks, len(checks))[:len(checks)]
	for i := range checks {
		a := &l.asks[i]
		a.granted, a.rest, a.copies = &granted[i], &rest[i], int64(copies[i])
		if err := s.ready(a, &checks[i]); err != nil {
			return err
		}
		l.laws[a.b.kind].add(a, &s.clock)
	}
	var others sync.WaitGroup
	defer others.Wait()
	var last *together
	for i := range l.laws {
		t := &l.laws[i]
		if len(t.asks) == 0 {
			continue
		}
		if other := last; other != nil {
			others.Go(func() { s.askEach(ctx, other) })
		}
		last = t
	}
	if last != nil {
		s.askEach(ctx, last)
	}
	return nil
}

// letter is memory of TakeEach that is used again.
type letter struct {
	asks []ask
	laws [kinds + 1]together
}

var letters = sync.Pool{New: func() any { return new(letter) }}

// done forgets all that l was about. The client may still have the keys, and the strings
// that args were made into, but not their slices.
func (l *letter) done() {
	clear(l.asks)
	l.asks = l.asks[:0]
	for i := range l.laws {
		t := &l.laws[i]
		clear(t.asks)
		clear(t.keys)
		t.asks, t.keys, t.args = t.asks[:0], t.keys[:0], t.args[:0]
	}
	letters.Put(l)
}

// ask is a check that goes with others and is decided alone.
type ask struct {
	plan
	copies        int64
	granted, rest *tidegate.Decision
}

func (s *Store) ready(a *ask, c *tidegate.Check) error {
	b, err := s.bind(c.Limit)
	switch {
	case err != nil:
		return err
	case a.copies < 1 || c.Cost < 0:
		return fmt.Errorf("redis: TakeEach(%s): %d copies at a cost of %d", c.Limit, a.copies, c.Cost)
	case c.Advisory || b.kind == leases || s.cluster:
		return fmt.Errorf("redis: TakeEach(%s): %w", c.Limit, tidegate.ErrUnsupported)
	}
	a.plan = plan{b: b, check: c, key: b.name(c.Key), cost: c.Cost, wait: algo.Ticks(c.MaxWait)}
	return nil
}

// together is checks of one law on their way to Redis.
type together struct {
	asks []*ask
	keys []string
	args packer
}

const sizeOfNow = 8

func (t *together) add(a *ask, c *clock) {
	if len(t.args) == 0 {
		t.args.number(c.pretended())
	}
	t.asks, t.keys = append(t.asks, a), append(t.keys, a.key)
	start := len(t.args)
	t.args.uint16(0) // its size, when that is known
	t.args.int(min(a.copies, maxCopies))
	a.pack(&t.args, uint16(len(t.keys)), c)
	size := len(t.args) - start
	t.args[start], t.args[start+1] = byte(size), byte(size>>8)
}

// askEach asks for all of t, and notes the answers.
func (s *Store) askEach(ctx context.Context, t *together) {
	var law kindSet
	law.add(t.asks[0].b.kind)
	args := string(t.args)
	got, err := s.run(ctx, scriptFor(each, law), t.keys, []string{args[:sizeOfNow], args[sizeOfNow:]})
	if err == nil {
		err = s.answers(ctx, t.asks, got)
	}
	if err != nil {
		for _, a := range t.asks {
			*a.granted = tidegate.Decision{Err: failure("take", err)}
		}
	}
}

// answers reads the answers to asks.
func (s *Store) answers(ctx context.Context, asks []*ask, got reply) error {
	if len(got) == 0 {
		return fmt.Errorf("an empty answer to %d checks", len(asks))
	}
	now, got := got[0], got[1:]
	for _, a := range asks {
		size := 6
		if len(got) >= size && got[0] > 0 && got[0] < min(a.copies, maxCopies) {
			size = 8
		}
		if len(got) < size {
			return fmt.Errorf("an answer that is too short, to %d checks", len(asks))
		}
		plans, g, err := []*plan{&a.plan}, grant{copies: got[0], at: now * algo.Micro}, error(nil)
		if g.copies >= 0 {
			a.at, a.answer = g.at, answerOf(got[:size])
			*a.granted = decision(plans, g, a.copies)
		} else { // its calendar bounds were missed
			s.reach(plans, now, got[1])
			if *a.granted, g, err = s.decide(ctx, plans, order{copies: a.copies}); err != nil {
				*a.granted = tidegate.Decision{Err: failure("take", err)}
			}
		}
		*a.rest = tidegate.Decision{}
		if a.granted.Granted > 0 && a.granted.Granted < a.copies {
			*a.rest = shortfall(plans, g)
		}
		got = got[size:]
	}
	return nil
}
