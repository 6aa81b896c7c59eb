package memory

import (
	"fmt"
	"sync/atomic"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// compiledLimit is a limit as this store uses it: its table, and its numbers as a law of
// package algo.
//
// With thousands of limits, each decision misses the cache for its own limit: so the fields by
// which a token bucket is decided come first, within the 64 bytes of a cache line.
type compiledLimit struct {
	limit  *tidegate.Limit
	salt   uint64               // of the table
	hotTag atomic.Uint64        // of the key that hot was last set for
	hot    atomic.Pointer[slot] // the slot to try first; see hotEvery
	kind   kind
	short  shortWay
	bucket algo.BucketLaw

	table  *table
	budget *budget

	counter algo.CounterLaw
	sliding algo.SlidingLaw
	runs    algo.RunsLaw
	lease   algo.LeaseLaw

	spans atomic.Pointer[algo.Span] // the counter's current period

	fits   int64                            // the most events that can be used: the capacity less floor
	floor  int64                            // events that have to remain
	floors atomic.Pointer[[]*compiledLimit] // the same limit with floors; see withFloor
	plain  *compiledLimit                   // the same limit without a floor; itself if it has none

	successor *tidegate.Limit // that follows this bucket; see follow

	_ [32]byte // Go's heap aligns 384 bytes to cache lines, and 352 not
}

// attachLimit compiles l and makes it the limit by which sweeps of t judge keys.
func attachLimit(l *tidegate.Limit, t *table, budget *budget) *compiledLimit {
	lim := newCompiledLimit(l, t, budget)
	t.noteLimit(l.Capacity(), lim.bucket.Tau)
	t.lastLimit.Store(lim)
	budget.keepExhausted(t, lim.keepsExhausted())
	return lim
}

func newCompiledLimit(l *tidegate.Limit, t *table, budget *budget) *compiledLimit {
	lim := &compiledLimit{limit: l, table: t, budget: budget, salt: t.salt, kind: t.kind, short: shortWays[l.Algorithm], fits: l.Capacity()}
	lim.plain = lim
	switch t.kind {
	case buckets:
		lim.bucket = algo.NewBucketLaw(l)
		if lim.successor = algo.Successor(l); lim.successor != nil {
			lim.short = longWay
		}
	case counters:
		lim.counter = algo.NewCounterLaw(l)
	case slidings:
		lim.sliding = algo.NewSlidingLaw(l)
	case runs:
		if lim.runs = algo.NewRunsLaw(l); lim.runs.CountsRejected() {
			lim.short = longWay
		}
	case leases:
		lim.lease = algo.NewLeaseLaw(l)
	}
	return lim
}

// law returns the law of the bucket, with the widest of its table: a slot has no room for when
// it was written, but all limits of the table are known here.
func (lim *compiledLimit) law() algo.BucketLaw {
	l := lim.bucket
	l.Widest, l.Longest = lim.table.widest.Load(), lim.table.longest.Load()
	return l
}

// lawOf is law at the pace of the limit under which b was written, of which nothing is used if it
// was written under none.
func (lim *compiledLimit) lawOf(b algo.Bucket) algo.BucketLaw {
	l := lim.law()
	if b.Em > 0 {
		l.Em = b.Em
	}
	return l
}

// maxCompiled is how many compiled limits of one identity are kept; a caller that
// makes a new Limit per request gets slower, not larger.
const maxCompiled = 64

// compile returns the compiled limit, with its table, which are made at the first call.
func (s *Store) compile(l *tidegate.Limit) (*compiledLimit, error) {
	if lim := s.compiled.find(l); lim != nil {
		return lim, nil
	}
	return s.compileSlow(l)
}

func (s *Store) compileSlow(l *tidegate.Limit) (*compiledLimit, error) {
	if l == nil || l.Identity() == "" {
		return nil, fmt.Errorf("memory: a check has no limit made by tidegate.NewLimit")
	}
	if l.Algorithm == tidegate.Deny {
		return nil, fmt.Errorf("memory: %s is an access rule, which no store counts; put the request to a tidegate.Gate", l)
	}
	s.mu.Lock()
	lim, added := s.compileLocked(l)
	s.mu.Unlock()
	if added { // at the memory bound, others must make room for its table
		now := s.clock.now()
		s.reclaim(lim.table, 1, now, false)
		for i := 0; i < maxRounds && s.budget.used.Load() > s.budget.max; i++ {
			s.sweeper.visit(s, lim.table, now) // tables of limits that were only looked at are empty
		}
	}
	return lim, nil
}

func (s *Store) compileLocked(l *tidegate.Limit) (lim *compiledLimit, added bool) {
	if lim := s.compiled.find(l); lim != nil {
		return lim, false
	}
	t := s.byID[l.Identity()]
	if added = t == nil; added {
		t = newTable(l.Identity(), kinds[l.Algorithm], s.hash.sum(l.Identity(), 0).tag, &s.budget)
		s.budget.giveBack(t, -tableBytes)
		s.byID[t.id] = t
		t.index = len(s.tables)
		s.tables = append(s.tables, t)
		s.reviveLocked(t)
	}
	if len(t.limits) == maxCompiled {
		s.forgetLocked(t)
	}
	lim = attachLimit(l, t, &s.budget)
	t.limits = append(t.limits, l)
	s.compiled.add(lim)
	return lim, added
}

// forgetLocked forgets the compiled limits of t; those still in use are compiled again.
func (s *Store) forgetLocked(t *table) {
	for _, l := range t.limits {
		s.compiled.remove(l)
	}
	t.limits = nil
}

// current returns lim, or the limit compiled again if its table was dropped.
func (s *Store) current(lim *compiledLimit) *compiledLimit {
	for lim.table.dropped.Load() {
		floor := lim.floor
		lim, _ = s.compileSlow(lim.limit) // it was valid before
		lim = lim.withFloor(floor)
	}
	return lim
}

// dropIfEmpty forgets t if it has no keys, and reports whether it did. A limit of t that is still
// used gets another table.
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
	s.noteLostLocked(t)
	return true
}

// The statistics of a dropped table that had lost keys or requests are kept. They take about lostBytes
// for each table, and at most 1/lostShare of the store for all.
const (
	lostBytes = 128
	lostShare = 16
)

// noteLostLocked keeps the statistics of a table that is dropped, if it had lost anything, so that they
// can still be reported.
func (s *Store) noteLostLocked(t *table) {
	var st Stats
	if st.add(t); st == (Stats{}) {
		return
	}
	if s.lost == nil {
		s.lost = make(map[string]Stats)
	}
	full := s.budget.used.Load()+lostBytes > s.budget.max
	if most := s.budget.max / lostShare / lostBytes; full || int64(len(s.lost)) >= most {
		for id := range s.lost { // any: all of them are still in droppedStats
			delete(s.lost, id)
			s.budget.used.Add(-lostBytes)
			full = false
			break
		}
	}
	if !full {
		s.lost[t.id] = st
		s.budget.used.Add(lostBytes)
	}
}

// reviveLocked continues the statistics of a dropped table in t, which takes its place.
func (s *Store) reviveLocked(t *table) {
	st, ok := s.lost[t.id]
	if !ok {
		return
	}
	delete(s.lost, t.id)
	s.budget.used.Add(-lostBytes)
	s.droppedStats.Evicted -= st.Evicted
	s.droppedStats.Forgotten -= st.Forgotten
	s.droppedStats.RefusedFull -= st.RefusedFull
	t.evicted.Store(st.Evicted)
	t.forgotten.Store(st.Forgotten)
	t.refused.Store(st.RefusedFull)
}
