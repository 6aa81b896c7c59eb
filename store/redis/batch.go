package redis

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/store/redis/internal/rediswire"
)

// maxBatch is how many checks one call decides: it keeps all others waiting for about
// a third of a millisecond.
const maxBatch = 32

// maxBatchAcross is the same for a master of a cluster, which has only a part of the calls to
// keep waiting. It makes up for what a cluster adds to every command of a script.
const maxBatchAcross = 2 * maxBatch

// MaxBatch is for package fleet: how many asks share a round trip.
func (s inside) MaxBatch() int {
	if s.cluster {
		return maxBatchAcross
	}
	return maxBatch
}

// TakeBatch is for package fleet: Take of several vectors that have nothing to do with
// each other, in one round trip. Vectors of one check share a call of a script if they
// are of one algorithm and, in a cluster, of one master, which takes Redis up to half less
// than a call for each.
func (s inside) TakeBatch(ctx context.Context, asks []chain.Ask) error {
	if len(asks) == 1 {
		s.takeAlone(ctx, &asks[0])
		return nil
	}
	l := letters.Get().(*letter)
	defer l.done()
	var others sync.WaitGroup
	defer others.Wait()
	l.asks = slices.Grow(l.asks, len(asks))[:len(asks)]
	for i := range asks {
		a := &l.asks[i]
		ready, err := s.ready(a, &asks[i])
		switch {
		case err != nil:
			asks[i].Err = err
		case ready:
			l.group(a.b.kind, a.master).add(a, s.Store)
		default:
			others.Go(func() { s.takeAlone(ctx, &asks[i]) })
		}
	}
	for i, t := range l.groups[:l.used] {
		if i == l.used-1 {
			s.askEach(ctx, t)
		} else {
			others.Go(func() { s.askEach(ctx, t) })
		}
	}
	return nil
}

// takeAlone decides about one ask in a script of its own.
func (s *Store) takeAlone(ctx context.Context, a *chain.Ask) {
	a.Granted, a.Rest, a.Err = s.takeShort(ctx, a.Checks, a.Copies, a.Handle)
}

// letter is memory of TakeBatch that is used again.
type letter struct {
	asks   []ask
	groups []*together
	used   int // of groups
}

var letters = sync.Pool{New: func() any { return new(letter) }}

// group returns the checks of one law and master that have room for one more. How many are
// asked for at once outside of a cluster is the caller's to say.
func (l *letter) group(k kind, m *master) *together {
	for _, t := range l.groups[:l.used] {
		if t.kind == k && t.master == m && len(t.asks) < maxBatchAcross {
			return t
		}
	}
	if l.used == len(l.groups) {
		l.groups = append(l.groups, new(together))
	}
	t := l.groups[l.used]
	l.used++
	t.kind, t.master = k, m
	return t
}

// done forgets all that l was about. The client may still have the keys, and the strings
// that args were made into, but not their slices.
func (l *letter) done() {
	clear(l.asks)
	l.asks = l.asks[:0]
	for _, t := range l.groups[:l.used] {
		clear(t.asks)
		clear(t.keys)
		t.asks, t.keys, t.args, t.master = t.asks[:0], t.keys[:0], t.args[:0], nil
	}
	l.used = 0
	letters.Put(l)
}

// ask is a check that goes with others and is decided alone.
type ask struct {
	plan
	copies int64
	from   *chain.Ask
	master *master // in a cluster
}

// ready reports whether an ask can go with others.
func (s *Store) ready(a *ask, from *chain.Ask) (bool, error) {
	if len(from.Checks) != 1 {
		return false, nil
	}
	c := &from.Checks[0]
	b, err := s.bind(c.Limit)
	switch {
	case err != nil:
		return false, err
	case from.Copies < 1 || c.Cost < 0 || c.Floor < 0:
		return false, fmt.Errorf("redis: TakeBatch(%s): %d copies at a cost of %d above %d", c.Limit, from.Copies, c.Cost, c.Floor)
	case c.Advisory || b.kind == leases:
		return false, nil
	}
	a.copies, a.from = int64(from.Copies), from
	b = b.guess()
	a.plan = plan{b: b, check: c, key: b.name(c.Key), cost: c.Cost, floor: min(c.Floor, b.capacity), wait: algo.Ticks(c.MaxWait)}
	if s.cluster {
		a.master = s.batchOwner(a.key)
		return a.master != nil, nil
	}
	return true, nil
}

// together is checks of one law on their way to Redis, in a cluster to one master.
type together struct {
	kind   kind
	master *master
	asks   []*ask
	keys   []string
	args   packer
	tag    tag
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
	key, twin := uint16(len(t.keys)), uint16(0)
	if t.master != nil {
		key += 2 // keys are numbered by their place in ARGV
	}
	if a.b.inRuns() {
		t.keys = append(t.keys, a.b.twin(a.key))
		twin = key + 1
	}
	start := len(t.args)
	t.args.uint16(0) // its size, when that is known
	t.args.int(min(a.copies, maxCopies))
	a.pack(&t.args, key, twin, c)
	size := len(t.args) - start
	t.args[start], t.args[start+1] = byte(size), byte(size>>8)
}

// askEach asks for all of t, and notes the answers.
func (s *Store) askEach(ctx context.Context, t *together) {
	if t.master != nil {
		s.askAcross(ctx, t)
		return
	}
	var law kindSet
	law.add(t.asks[0].b.kind)
	args := string(t.args)
	got, err := s.numbers(ctx, scriptFor(s.batchForm(), law), t.keys, []string{args[:sizeOfHead], args[sizeOfHead:]}, t.tag)
	if err == nil {
		err = s.answers(ctx, t, got)
	}
	if err != nil {
		t.fail(s, err)
	}
}

// fail notes that there is no answer.
func (t *together) fail(s *Store, err error) {
	for _, a := range t.asks {
		a.from.Granted, a.from.Err = tidegate.Decision{}, s.failure("take", err)
	}
}

// answers reads the answers to t.
func (s *Store) answers(ctx context.Context, t *together, got reply) error {
	if err := t.read(got); err != nil {
		return err
	}
	var elsewhere []*ask
	now, got := got[0], got[1:]
	for _, a := range t.asks {
		size := a.size(got)
		plans, g, err := []*plan{&a.plan}, grant{copies: got[0], at: now * algo.Micro}, error(nil)
		switch g.copies {
		default:
			a.from.Granted, a.from.Err = decision(plans, g, a.copies), nil
		case itemElsewhere:
			elsewhere = append(elsewhere, a)
			got = got[size:]
			continue
		case itemFailed:
			a.from.Granted, a.from.Err = tidegate.Decision{}, s.failure("take", itemErrors[got[1]])
		case itemMissed, itemMoved: // its calendar bounds were missed, or its counter was found elsewhere
			if g.copies == itemMissed {
				s.reach(plans, now, got[1])
			} else {
				a.move(got[1])
			}
			a.from.Granted, g, err = s.decide(ctx, plans, order{copies: a.copies})
			a.from.Err = s.failure("take", err)
		}
		a.from.Rest = tidegate.Decision{}
		if n := a.from.Granted.Granted; n > 0 && n < a.copies {
			a.from.Rest = shortfall(plans, g)
		}
		got = got[size:]
	}
	if len(elsewhere) > 0 {
		s.survey()
		s.across.elsewhere.Add(uint64(len(elsewhere)))
		s.takeEachAlone(ctx, elsewhere)
	}
	return nil
}

// What a check gets, instead of copies, that has no answer.
const (
	itemMissed    = -1
	itemFailed    = -2
	itemMoved     = -3
	itemElsewhere = -4
)

// itemErrors are why one check could not be asked, by the number they have in the script.
var itemErrors = [...]error{
	1: rediswire.ServerError("WRONGTYPE the key holds a value of another type"),
	2: rediswire.ServerError("NOPERM the user may not run a command of the script"),
	3: rediswire.ServerError("ERR user_script: the key holds what the script cannot read"),
}

// read notes the answers to t, and says what is wrong with them.
func (t *together) read(got reply) error {
	asks := t.asks
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
		if one[0] == itemMoved && a.b.inRuns() && one[1] >= 0 && one[1] <= tidegate.MaxParts {
			continue
		}
		if one[0] == itemElsewhere && t.master != nil {
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
