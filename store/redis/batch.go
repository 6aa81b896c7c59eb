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

// maxBatch is how many checks one call decides: it blocks all others for about a third of
// a millisecond.
const maxBatch = 32

// maxBatchAcross is the same for a master of a cluster, which has only a part of the calls
// to block. It makes up for what a cluster adds to every command of a script.
const maxBatchAcross = 2 * maxBatch

// MaxBatch is for package fleet: how many asks share a round trip.
func (s fleetStore) MaxBatch() int {
	if s.cluster {
		return maxBatchAcross
	}
	return maxBatch
}

// TakeBatch is for package fleet: Take of several vectors that have nothing to do with
// each other, in one round trip. Vectors of one check share a call of a script if they
// are of one algorithm and, in a cluster or on shards, of one server, which takes Redis up to
// half less than a call for each.
func (s fleetStore) TakeBatch(ctx context.Context, asks []chain.Ask) error {
	if len(asks) == 1 {
		s.takeAlone(ctx, &asks[0])
		return nil
	}
	buf := batchBuffers.Get().(*batchBuffer)
	defer buf.done()
	var others sync.WaitGroup
	defer others.Wait()
	buf.asks = slices.Grow(buf.asks, len(asks))[:len(asks)]
	for i := range asks {
		a := &buf.asks[i]
		ready, err := s.ready(a, &asks[i])
		switch {
		case err != nil:
			asks[i].Err = err
		case ready:
			buf.group(a.lim.kind, a.master).add(a, s.Store)
		default:
			others.Go(func() { s.takeAlone(ctx, &asks[i]) })
		}
	}
	for i, t := range buf.groups[:buf.used] {
		if i == buf.used-1 {
			s.askEach(ctx, t)
		} else {
			others.Go(func() { s.askEach(ctx, t) })
		}
	}
	return nil
}

// takeAlone decides about one ask by itself, as Take does.
func (s *Store) takeAlone(ctx context.Context, a *chain.Ask) {
	a.Granted, a.Rest, a.Err = s.takeWithRest(ctx, a.Checks, takeParams{copies: int64(a.Copies), handle: a.Handle, lease: a.Lease.Microseconds()})
}

// batchBuffer is the memory of a TakeBatch, which is reused.
type batchBuffer struct {
	asks   []batchItem
	groups []*lawBatch
	used   int // of groups
}

var batchBuffers = sync.Pool{New: func() any { return new(batchBuffer) }}

// group returns the batch of one law and master that has room for one more check. Outside of
// a cluster the caller decides how large a batch is.
func (buf *batchBuffer) group(k kind, m *master) *lawBatch {
	for _, t := range buf.groups[:buf.used] {
		if t.kind == k && t.master == m && len(t.asks) < maxBatchAcross {
			return t
		}
	}
	if buf.used == len(buf.groups) {
		buf.groups = append(buf.groups, new(lawBatch))
	}
	t := buf.groups[buf.used]
	buf.used++
	t.kind, t.master = k, m
	return t
}

// done clears buf and puts it back into the pool. The client may still hold the keys, and the
// strings made from args, but not their slices.
func (buf *batchBuffer) done() {
	clear(buf.asks)
	buf.asks = buf.asks[:0]
	for _, t := range buf.groups[:buf.used] {
		clear(t.asks)
		clear(t.keys)
		t.asks, t.keys, t.args, t.master = t.asks[:0], t.keys[:0], t.args[:0], nil
	}
	buf.used = 0
	batchBuffers.Put(buf)
}

// batchItem is a check in a batch. It is decided independently of the others.
type batchItem struct {
	pendingCheck
	copies int64
	from   *chain.Ask
	master *master // that is asked, in a cluster or of shards; otherwise nil
}

// ready reports whether from can be part of a batch, and prepares a for it. An error means that from is
// invalid.
func (s *Store) ready(a *batchItem, from *chain.Ask) (bool, error) {
	if len(from.Checks) != 1 {
		return false, nil
	}
	c := &from.Checks[0]
	lim, err := s.compile(c.Limit)
	switch {
	case err != nil:
		return false, err
	case from.Copies < 1 || c.Cost < 0 || c.Floor < 0:
		return false, fmt.Errorf("redis: TakeBatch(%s): %d copies at a cost of %d above %d", c.Limit, from.Copies, c.Cost, c.Floor)
	case c.Advisory || lim.kind == leases:
		return false, nil
	}
	a.copies, a.from = int64(from.Copies), from
	lim = lim.asLastSeen()
	a.pendingCheck = pendingCheck{
		lim: lim, check: c, key: lim.name(c.Key), cost: c.Cost, floor: min(c.Floor, lim.capacity),
		wait: algo.Ticks(c.MaxWait), lease: from.Lease.Microseconds(),
	}
	if s.apart() {
		a.master = s.batchOwner(a.key)
		return a.master != nil, nil
	}
	return true, nil
}

// lawBatch is a batch of checks of one law, in a cluster or on shards for one server.
type lawBatch struct {
	kind   kind
	master *master
	asks   []*batchItem
	keys   []string
	args   packer
	tag    tag
}

// across reports whether its keys are in slots of a cluster, and travel as arguments.
func (t *lawBatch) across() bool { return t.master != nil && t.master.endpoint == nil }

const sizeOfHead = 2 * 8 // the tag, and the pretended time

func (t *lawBatch) add(a *batchItem, s *Store) {
	c := &s.clock
	if len(t.args) == 0 {
		t.tag = s.tag()
		t.args.number(float64(t.tag))
		t.args.number(c.pretended())
	}
	t.asks, t.keys = append(t.asks, a), append(t.keys, a.key)
	key, altKey := uint16(len(t.keys)), uint16(0)
	if t.across() {
		key += 2 // keys are numbered by their index in ARGV
	}
	if a.lim.isRuns() {
		t.keys = append(t.keys, a.lim.altKey(a.key))
		altKey = key + 1
	}
	start := len(t.args)
	t.args.uint16(0) // its size, filled in below
	t.args.int(min(a.copies, maxCopies))
	a.pack(&t.args, key, altKey, c)
	size := len(t.args) - start
	t.args[start], t.args[start+1] = byte(size), byte(size>>8)
}

// askEach sends all of t, and notes the answers.
func (s *Store) askEach(ctx context.Context, t *lawBatch) {
	if t.across() {
		s.askAcross(ctx, t)
		return
	}
	at := s.endpoints[0]
	if t.master != nil {
		at = t.master.endpoint
	}
	var law kindSet
	law.add(t.asks[0].lim.kind)
	args := string(t.args)
	got, err := at.runNumbers(ctx, scriptFor(s.batchTemplate(), law), t.keys, []string{args[:sizeOfHead], args[sizeOfHead:]}, t.tag)
	if err == nil {
		err = s.answers(ctx, t, got)
	}
	if err != nil {
		t.fail(s, err)
	}
}

// fail notes that there is no answer.
func (t *lawBatch) fail(s *Store, err error) {
	for _, a := range t.asks {
		a.from.Granted, a.from.Err = tidegate.Decision{}, s.failure("take", err)
	}
}

// answers notes the answers to t, and sends again what has to be asked elsewhere.
func (s *Store) answers(ctx context.Context, t *lawBatch, got reply) error {
	if err := t.read(got); err != nil {
		return err
	}
	var elsewhere []*batchItem
	now, got := got[0], got[1:]
	for _, a := range t.asks {
		size := a.size(got)
		pending, g, err := []*pendingCheck{&a.pendingCheck}, grant{copies: got[0], at: now * algo.Micro}, error(nil)
		switch g.copies {
		default:
			a.from.Granted, a.from.Err = decision(pending, g, a.copies), nil
		case itemElsewhere:
			elsewhere = append(elsewhere, a)
			got = got[size:]
			continue
		case itemFailed:
			a.from.Granted, a.from.Err = tidegate.Decision{}, s.failure("take", itemErrors[got[1]])
		case itemMissed, itemMoved: // its calendar bounds were missed, or its counter was found elsewhere
			if g.copies == itemMissed {
				s.extendDates(pending, now, got[1])
			} else {
				a.move(got[1])
			}
			a.from.Granted, g, err = s.decide(ctx, pending, takeParams{copies: a.copies})
			a.from.Err = s.failure("take", err)
		}
		a.from.Rest = tidegate.Decision{}
		if n := a.from.Granted.Granted; n > 0 && n < a.copies {
			a.from.Rest = shortfall(pending, g)
		}
		got = got[size:]
	}
	if len(elsewhere) > 0 {
		s.refreshTopology()
		s.across.elsewhere.Add(uint64(len(elsewhere)))
		s.takeEachAlone(ctx, elsewhere)
	}
	return nil
}

// What a script returns in place of the copies of a check that it did not decide.
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

// read notes the answers to t, or reports what is wrong with them.
func (t *lawBatch) read(got reply) error {
	asks := t.asks
	switch {
	case len(got) == 0:
		return invalidReply("no numbers about %d checks", len(asks))
	case got[0] < 0:
		return invalidReply("checks decided at %d µs: want 0 or more", got[0])
	}
	at, got := got[0]*algo.Micro, got[1:]
	for _, a := range asks {
		size := a.size(got)
		if len(got) < size {
			return invalidReply("%d numbers too few about %d checks", size-len(got), len(asks))
		}
		one := got[:size]
		got = got[size:]
		if one[0] == itemMissed && a.calendar() || one[0] == itemFailed && one[1] > 0 && int(one[1]) < len(itemErrors) {
			continue
		}
		if one[0] == itemMoved && a.lim.isRuns() && one[1] >= 0 && one[1] <= tidegate.MaxParts {
			continue
		}
		if one[0] == itemElsewhere && t.across() {
			continue
		}
		a.at, a.answer = at, answerOf(one)
		g := grant{copies: one[0], at: at}
		if err := g.validate([]*pendingCheck{&a.pendingCheck}, takeParams{copies: a.copies}); err != nil {
			return err
		}
	}
	if len(got) > 0 {
		return invalidReply("%d numbers too many about %d checks", len(got), len(asks))
	}
	return nil
}

// size returns how many numbers of got, from the first on, are about a.
func (a *batchItem) size(got reply) int {
	if len(got) > 0 && got[0] > 0 && got[0] < min(a.copies, maxCopies) {
		return 8
	}
	return 6
}
