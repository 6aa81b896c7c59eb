package redis

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
	"tidegate.dev/tidegate/internal/rediswire"
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
		l.laws[a.b.kind].add(a, s)
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
	tag  tag
}

const sizeOfHead = 2 * 8 // the tag, and the time that is pretended

func (t *together) add(a *ask, s *Store) {
	c := &s.clock
	if len(t.args) == 0 {
		t.tag = s.tag()
		t.args.number(float64(t.tag))
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
	got, err := s.numbers(ctx, scriptFor(each, law), t.keys, []string{args[:sizeOfHead], args[sizeOfHead:]}, t.tag)
	if err == nil {
		err = s.answers(ctx, t.asks, got)
	}
	if err != nil {
		for _, a := range t.asks {
			*a.granted = tidegate.Decision{Err: s.failure("take", err)}
		}
	}
}

// answers reads the answers to asks.
func (s *Store) answers(ctx context.Context, asks []*ask, got reply) error {
	if err := read(asks, got); err != nil {
		return err
	}
	now, got := got[0], got[1:]
	for _, a := range asks {
		size := a.size(got)
		plans, g, err := []*plan{&a.plan}, grant{copies: got[0], at: now * algo.Micro}, error(nil)
		switch g.copies {
		default:
			*a.granted = decision(plans, g, a.copies)
		case itemFailed:
			*a.granted = tidegate.Decision{Err: s.failure("take", itemErrors[got[1]])}
		case itemMissed: // its calendar bounds were
			s.reach(plans, now, got[1])
			if *a.granted, g, err = s.decide(ctx, plans, order{copies: a.copies}); err != nil {
				*a.granted = tidegate.Decision{Err: s.failure("take", err)}
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

// What a check gets, instead of copies, that has no answer.
const (
	itemMissed = -1
	itemFailed = -2
)

// itemErrors are why one check could not be asked, by the number they have in the script.
var itemErrors = [...]error{
	1: rediswire.ServerError("WRONGTYPE the key holds a value of another type"),
	2: rediswire.ServerError("NOPERM the user may not run a command of the script"),
	3: rediswire.ServerError("ERR user_script: the key holds what the script cannot read"),
}

// read notes the answers to asks, and says what is wrong with them.
func read(asks []*ask, got reply) error {
	if len(got) == 0 || got[0] < 0 {
		return nonsense("%d numbers about %d checks", len(got), len(asks))
	}
	at, got := got[0]*algo.Micro, got[1:]
	for _, a := range asks {
		size := a.size(got)
		if len(got) < size {
			return nonsense("%d numbers too few about %d checks", size-len(got), len(asks))
		}
		one := got[:size]
		got = got[size:]
		if one[0] == itemMissed && a.calendar() || one[0] == itemFailed && one[1] > 0 && int(one[1]) < len(itemErrors) {
			continue
		}
		a.at, a.answer = at, answerOf(one)
		g := grant{copies: one[0], at: at}
		if err := g.sane([]*plan{&a.plan}, order{copies: a.copies}); err != nil {
			return err
		}
	}
	if len(got) > 0 {
		return nonsense("%d numbers too many about %d checks", len(got), len(asks))
	}
	return nil
}

// size is how many numbers are about a, which comes next.
func (a *ask) size(got reply) int {
	if len(got) > 0 && got[0] > 0 && got[0] < min(a.copies, maxCopies) {
		return 8
	}
	return 6
}
