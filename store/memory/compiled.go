package memory

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// compiledLimit is a limit as this store uses it: its table, and its numbers as a law of
// package algo.
type compiledLimit struct {
	limit         *tidegate.Limit
	table         *table
	budget        *budget
	kind          kind
	isTokenBucket bool

	hot atomic.Pointer[slot] // where a token bucket's key was found lately

	bucket  algo.BucketLaw
	counter algo.CounterLaw
	sliding algo.SlidingLaw
	runs    algo.RunsLaw
	lease   algo.LeaseLaw

	spans atomic.Pointer[algo.Span] // the counter's current period

	fits   int64                            // events that can be used at once: the capacity less floor
	floor  int64                            // events that have to remain
	floors atomic.Pointer[[]*compiledLimit] // the same limit with floors; see withFloor
}

// attachLimit compiles l and makes it the limit that sweeps of t go by.
func attachLimit(l *tidegate.Limit, t *table, budget *budget) *compiledLimit {
	b := newCompiledLimit(l, t, budget)
	t.noteLimit(l.Capacity(), b.bucket.Tau)
	t.lastLimit.Store(b)
	t.keepsExhausted.Store(b.keepsExhausted())
	return b
}

func newCompiledLimit(l *tidegate.Limit, t *table, budget *budget) *compiledLimit {
	b := &compiledLimit{limit: l, table: t, budget: budget, kind: t.kind, isTokenBucket: l.Algorithm == tidegate.TokenBucket, fits: l.Capacity()}
	switch t.kind {
	case buckets:
		b.bucket = algo.NewBucketLaw(l)
	case counters:
		b.counter = algo.NewCounterLaw(l)
	case slidings:
		b.sliding = algo.NewSlidingLaw(l)
	case runs:
		b.runs = algo.NewRunsLaw(l)
	case leases:
		b.lease = algo.NewLeaseLaw(l)
	}
	b.hot.Store(new(slot))
	return b
}

// law is the bucket's law among the others of its table. A slot has no room for when it
// was written; but all limits of the table are known here, and so is the widest.
func (b *compiledLimit) law() algo.BucketLaw {
	l := b.bucket
	l.Widest, l.Longest = b.table.widest.Load(), b.table.longest.Load()
	return l
}

// maxCompiled is how many compiled limits of one identity are kept; a caller that
// makes a new Limit per request gets slower, not larger.
const maxCompiled = 64

// compile returns the compiled limit, with its table, which are made at the first call.
func (s *Store) compile(l *tidegate.Limit) (*compiledLimit, error) {
	if b := s.recentEntry(l).Load(); b != nil && b.limit == l {
		return b, nil
	}
	b, err := s.compileSlow(l)
	if err == nil {
		s.remember(b)
	}
	return b, err
}

// recentEntry returns the entry of the limit in the cache of recent ones.
func (s *Store) recentEntry(l *tidegate.Limit) *atomic.Pointer[compiledLimit] {
	return &s.recent[uintptr(unsafe.Pointer(l))/unsafe.Sizeof(*l)%uintptr(len(s.recent))]
}

func (s *Store) remember(b *compiledLimit) { s.recentEntry(b.limit).Store(b) }

func (s *Store) compileSlow(l *tidegate.Limit) (*compiledLimit, error) {
	if l == nil || l.Identity() == "" {
		return nil, fmt.Errorf("memory: a check has no limit made by tidegate.NewLimit")
	}
	if l.Algorithm == tidegate.Deny {
		return nil, fmt.Errorf("memory: %s is an access rule, which no store counts; put the request to a tidegate.Gate", l)
	}
	s.mu.Lock()
	b, added := s.compileLocked(l)
	s.mu.Unlock()
	if added { // at the memory bound, others must make room for its table
		s.reclaim(b.table, 1, s.clock.now(), false)
	}
	return b, nil
}

func (s *Store) compileLocked(l *tidegate.Limit) (b *compiledLimit, added bool) {
	if b := s.compiled[l]; b != nil {
		return b, false
	}
	t := s.byID[l.Identity()]
	if added = t == nil; added {
		t = newTable(l.Identity(), kinds[l.Algorithm], s.hash.sum(l.Identity(), 0).tag, &s.budget)
		s.budget.giveBack(t, -tableBytes)
		s.byID[t.id] = t
		t.index = len(s.tables)
		s.tables = append(s.tables, t)
	}
	if len(t.limits) == maxCompiled {
		s.forgetLocked(t)
	}
	b = attachLimit(l, t, &s.budget)
	t.limits = append(t.limits, l)
	s.compiled[l] = b
	return b, added
}

// forgetLocked forgets the compiled limits of t; those still in use are compiled again.
func (s *Store) forgetLocked(t *table) {
	for _, l := range t.limits {
		delete(s.compiled, l)
	}
	t.limits = nil
}

// current returns b, or the limit compiled again if its table was dropped.
func (s *Store) current(b *compiledLimit) *compiledLimit {
	for b.table.dropped.Load() {
		floor := b.floor
		b, _ = s.compileSlow(b.limit) // it was valid before
		s.remember(b)
		b = b.withFloor(floor)
	}
	return b
}

// dropIfEmpty forgets a table without keys. If its limit is still used, it gets another.
func (s *Store) dropIfEmpty(t *table) bool {
	if t.keys.Load() > 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g := t.dir.Load().segs[0].Load()
	if t.dropped.Load() || !g.mu.TryLock() {
		return false
	}
	defer g.mu.Unlock()
	if g.depth > 0 || g.slots.Load() > 0 {
		return false
	}
	t.dropped.Store(true)
	s.forgetLocked(t)
	delete(s.byID, t.id)
	last := len(s.tables) - 1
	s.tables[t.index] = s.tables[last]
	s.tables[t.index].index = t.index
	s.tables[last] = nil
	s.tables = s.tables[:last]
	if s.largest == t {
		s.largest = nil
	}
	s.droppedStats.add(t)
	s.budget.giveBack(t, tableBytes)
	return true
}
