package node

import (
	"hash/maphash"
	"math"
	"math/bits"
	"runtime"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
)

// denials is the deny cache: refusals of the backend, each found by its counter and the numbers
// of the limit. The refusal of a cost answers that cost and more for its RetryAfter, counted from
// before the backend was asked, but at most for maxDenial: this node does not see what others give
// back. So a node may refuse for that long what would pass, but never lets pass what would not.
//
// It is a table of a fixed size in sets of four. Readers take no lock: what they read is valid if
// the turn of the set was even, and the same before and after.
type denials struct {
	keys, more maphash.Seed
	epoch      atomic.Uint64 // see forget
	sets       []denialSet

	// If no refusal is in force, there is no need to look: until is when the last of all
	// refusals ends, and past an instant that has surely passed. See none.
	until, past atomic.Int64

	retry atomic.Int64 // when the last of all refusals is over that hold while the backend is away
}

type denialSet struct {
	turn    atomic.Uint64 // odd while one writes
	dropped atomic.Int64  // when something was last given back: refusals asked for before that are not noted
	// names has half of the name of each entry's counter, so that a reader that finds nothing reads
	// one cache line only; 0 means that there is no entry.
	names   [4]atomic.Uint64
	_       [16]byte
	entries [4]denial
}

// denial is one refusal, in a cache line. Times are those of Node.now.
type denial struct {
	name  atomic.Uint64 // the other half of the counter's name
	under atomic.Uint64 // the numbers of the limit, and the epoch: see under
	cost  atomic.Int64  // what was refused, the floor included: see needed
	until atomic.Int64  // it answers in place of the backend until then
	retry atomic.Int64  // when the backend would have room, which may be later
	reset atomic.Int64  // when nothing of the limit would be used any more
	left  atomic.Int64  // what remained, the floor included
	known atomic.Uint64 // the counter's name in seen, which a successor can make as well
}

// maxDenial is how long a refusal is remembered at most.
const maxDenial = time.Second

func (t *denials) init(entries int) {
	t.keys, t.more = maphash.MakeSeed(), maphash.MakeSeed()
	t.sets = make([]denialSet, max(entries/4, 1))
}

// none reports whether there is surely nothing to find.
func (t *denials) none() bool { return t.until.Load() <= t.past.Load() }

// pass notes that an instant has passed. It need not be called often.
func (t *denials) pass(at time.Duration) {
	if t.past.Load() < int64(at-maxDenial/8) {
		t.past.Store(int64(at))
	}
}

// forget begins a new epoch: find no longer finds the refusals of before, but findLate does.
func (t *denials) forget() { t.epoch.Add(1) }

// counter is the name of a counter in the table: 128 bits that nobody can predict.
type counter struct{ a, b uint64 }

func (t *denials) counter(l *tidegate.Limit, key string) counter {
	id := maphash.String(t.keys, l.Identity())
	return counter{
		a: maphash.String(t.keys, key) + id*0x9E3779B97F4A7C15,
		b: maphash.String(t.more, key) ^ bits.RotateLeft64(id, 32),
	}
}

// under returns a hash of the epoch and of the numbers of a limit that are not in its identity.
func under(l *tidegate.Limit, epoch uint64) uint64 { return mix(numbersOf(l) ^ epoch) }

// wasUnder reports whether denial.under stands for the numbers of l, in this epoch or in one of the
// lateEpochs before it.
func (t *denials) wasUnder(is uint64, l *tidegate.Limit) bool {
	numbers, epoch := numbersOf(l), t.epoch.Load()
	for back := range min(epoch, lateEpochs) + 1 {
		if is == mix(numbers^(epoch-back)) {
			return true
		}
	}
	return false
}

// lateEpochs is how many epochs back findLate looks.
const lateEpochs = 64

func numbersOf(l *tidegate.Limit) uint64 {
	sum := mix(uint64(l.Events))
	sum = mix(sum ^ uint64(l.Burst))
	if l.Ceiling {
		sum = mix(sum ^ 1)
	}
	if l.RawTime {
		sum = mix(sum ^ uint64(l.Period))
	}
	return sum
}

func mix(x uint64) uint64 {
	x = (x ^ x>>32) * 0xD6E8FEB86659FD93
	return (x ^ x>>32) * 0xD6E8FEB86659FD93
}

func (t *denials) set(c counter) *denialSet {
	i, _ := bits.Mul64(c.a, uint64(len(t.sets)))
	return &t.sets[i]
}

// refused is what is remembered of a refusal. Times are those of Node.now.
type refused struct {
	until, retry, reset time.Duration
	left                int64
}

// find looks for a refusal of a cost or of a lower one, under the numbers and the epoch that under
// stands for.
func (t *denials) find(c counter, under uint64, cost int64) (refused, bool) {
	return t.findLast(c, cost, func(is uint64) bool { return is == under })
}

// findLate looks for a refusal of a cost or of a lower one, under the numbers of l, in this epoch or
// in one of the lateEpochs before it.
func (t *denials) findLate(c counter, l *tidegate.Limit, cost int64) (refused, bool) {
	return t.findLast(c, cost, func(is uint64) bool { return t.wasUnder(is, l) })
}

// findLast returns the refusal that ends last, of those of a cost or of a lower one whose
// denial.under fits.
func (t *denials) findLast(c counter, cost int64, fits func(under uint64) bool) (r refused, ok bool) {
	set := t.set(c)
	turn := set.turn.Load()
	for i := range set.entries {
		if !set.holds(i, c) {
			continue
		}
		e := &set.entries[i]
		if is := e.refused(); e.cost.Load() <= cost && (!ok || is.until > r.until) && fits(e.under.Load()) {
			r, ok = is, true
		}
	}
	return r, ok && turn%2 == 0 && set.turn.Load() == turn
}

func (e *denial) refused() refused {
	return refused{time.Duration(e.until.Load()), time.Duration(e.retry.Load()), time.Duration(e.reset.Load()), e.left.Load()}
}

// holds reports whether the entry i is about c.
func (s *denialSet) holds(i int, c counter) bool {
	return s.names[i].Load() == c.a && s.entries[i].name.Load() == c.b
}

// lock starts a change, or returns false if somebody else is changing the set.
func (s *denialSet) lock() bool {
	turn := s.turn.Load()
	return turn%2 == 0 && s.turn.CompareAndSwap(turn, turn+1)
}

func (s *denialSet) unlock() { s.turn.Add(1) }

// note stores a refusal of a cost, which was asked for at the instant asked. It replaces that of the
// same counter and numbers, or else the one that ends first. It reports false if it has stored
// nothing, because something was given back meanwhile or somebody else is changing the set.
//
// known is the counter's name in seen.
func (t *denials) note(c counter, known, under uint64, cost int64, r refused, asked time.Duration) bool {
	set := t.set(c)
	if !set.lock() {
		return false
	}
	defer set.unlock()
	if set.dropped.Load() > int64(asked) {
		return false
	}
	t.last(r)
	place, first := 0, int64(math.MaxInt64)
	for i := range set.entries {
		e := &set.entries[i]
		if set.holds(i, c) && e.under.Load() == under {
			place = i
			break
		}
		if until := e.until.Load(); until < first {
			place, first = i, until
		}
	}
	set.names[place].Store(c.a)
	at := &set.entries[place]
	at.name.Store(c.b)
	at.under.Store(under)
	at.cost.Store(cost)
	at.until.Store(int64(r.until))
	at.retry.Store(int64(r.retry))
	at.reset.Store(int64(r.reset))
	at.left.Store(r.left)
	at.known.Store(known)
	return true
}

// last raises t.until and t.retry to those of r.
func (t *denials) last(r refused) {
	raise(&t.until, int64(r.until))
	raise(&t.retry, int64(r.retry))
}

func raise(v *atomic.Int64, to int64) {
	for was := v.Load(); was < to && !v.CompareAndSwap(was, to); {
		was = v.Load()
	}
}

// drop forgets the refusals of a counter, under whatever limit.
func (t *denials) drop(c counter, now time.Duration) {
	set := t.set(c)
	for !set.lock() {
		runtime.Gosched()
	}
	defer set.unlock()
	set.dropped.Store(int64(now) + 1)
	for i := range set.entries {
		if set.holds(i, c) {
			set.names[i].Store(0)
			set.entries[i].until.Store(0)
		}
	}
}
