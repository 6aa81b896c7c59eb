// Package memory is the store that lives in the process: bounded tables of
// packed states. One check is decided by one compare-and-swap, several are
// charged all or none. It shares nothing with other processes.
//
// Start with [New], or [Open] to set the bound. A Store needs no closing and
// runs no goroutine: calls sweep as they come, so it works inside a
// testing/synctest bubble.
//
// Keys are stored as a keyed hash of 76 bits. At a hundred million keys the
// chance that any two of them share a counter is below one in ten million.
package memory

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
)

// DefaultMaxBytes bounds a Store whose Config does not.
const DefaultMaxBytes = 256 << 20

// Config of a Store; the zero value is what New uses.
type Config struct {
	// MaxBytes bounds the memory of all tables together; 0 means
	// DefaultMaxBytes. About 35 bytes hold a key of a bucket or a window, 45 a
	// key of a log or of sub-windows with one event, and 64 more one with a few.
	// At the bound, a limit's OnFull decides.
	MaxBytes int64
	// Now replaces the clock, for tests. It may be set back. By default the
	// store keeps a steady clock that no step of the wall clock can move, and
	// aligns fixed windows and quotas to the wall clock.
	Now func() time.Time
}

// Store is a tidegate.Store in memory, also a OneTaker, Renewer, Reserver and
// Resetter.
type Store struct {
	clock    clock
	hash     hashKey
	budget   budget
	origin   atomic.Int64 // ticks; bucket states count from here
	moving   sync.Mutex   // held while origin changes
	lastAt   atomic.Int64 // the latest name of a lease; see leaseName
	compiled limitIndex   // the limits in use
	sweeper  sweeper

	mu           sync.Mutex
	byID         map[string]*table // under mu
	tables       []*table          // under mu
	largest      *table            // under mu: the largest seen recently
	victimCursor int               // under mu: the table that victim looked at last
	droppedStats Stats             // under mu: what happened in tables that were dropped
	lost         map[string]Stats  // under mu: the same by identity, of dropped tables that had lost anything

	instance     uint64 // names this process in the receipts of reservations and slots
	reservations reservations
}

var (
	_ tidegate.Store    = (*Store)(nil)
	_ tidegate.OneTaker = (*Store)(nil)
	_ tidegate.Renewer  = (*Store)(nil)
	_ tidegate.Reserver = (*Store)(nil)
	_ tidegate.Resetter = (*Store)(nil)
)

// New is shorthand for Open(Config{}).
func New() *Store { return Open(Config{}) }

// Open returns an empty Store.
func Open(c Config) *Store { return open(c, newHashKey()) }

func open(c Config, key hashKey) *Store {
	s := &Store{
		clock: newClock(c.Now),
		hash:  key,
		byID:  make(map[string]*table),
	}
	if c.MaxBytes <= 0 {
		c.MaxBytes = DefaultMaxBytes
	}
	s.compiled.current.Store(newLimitArray(0))
	s.instance = tidegate.NewHandle()[0] | 1
	s.budget.open(c.MaxBytes)
	s.reservations.held.keepsExhausted.Store(true)
	runtime.AddCleanup(s, (*blocks).free, s.budget.blocks)
	s.origin.Store(s.clock.now() - originMargin)
	return s
}

// Stats counts what a Store holds and what happened at its bound.
type Stats struct {
	Bytes       int64 // held by the tables, at most MaxBytes
	Keys        int64 // remembered, idle ones not yet swept included
	Evicted     int64 // of the Forgotten: keys that were not holding anybody back
	Forgotten   int64 // keys dropped at the bound that had used events
	RefusedFull int64 // requests refused, and charges left out, because their key found no room
}

// Stats returns the sum over all tables.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	total := s.droppedStats
	total.Bytes = s.budget.used.Load()
	for _, t := range s.tables {
		total.add(t)
	}
	return total
}

func (s *Store) allTables() []*table {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.tables)
}

// LimitStats returns the Stats of the counters of l.
func (s *Store) LimitStats(l *tidegate.Limit) Stats {
	var st Stats
	if l == nil {
		return st
	}
	s.mu.Lock()
	t := s.byID[l.Identity()]
	st = s.lost[l.Identity()]
	s.mu.Unlock()
	if t != nil {
		st.Bytes = t.bytes.Load()
		st.add(t)
	}
	return st
}

func (st *Stats) add(t *table) {
	st.Keys += t.keys.Load()
	st.Evicted += t.evicted.Load()
	st.Forgotten += t.forgotten.Load()
	st.RefusedFull += t.refused.Load()
}
