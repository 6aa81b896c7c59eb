package board

import (
	"sync/atomic"
	"time"
)

// status is what is known of the table, under the lock of the board.
type status struct {
	started atomic.Bool
	fresh   string // the epoch that an empty table gets
	epoch   string // of the table that version is of
	version int64  // up to which all changes are known
	synced  time.Time
	applied atomic.Int64 // version, for everybody

	compareNow bool      // all records are to be compared with those of the table
	compared   time.Time // when they were
	failedAt   time.Time // when looking began to fail; zero if it does not
	why        error     // it does
	told       bool      // and the log says so

	was time.Time // the clock of the table
	at  time.Time // when it was read, by the monotonic clock
}

// time is that of the table as far as it is known, else that of this process.
func (s *status) time() time.Time {
	if s.at.IsZero() {
		return time.Now()
	}
	return s.was.Add(time.Since(s.at))
}

// latest is time, or that of this process if that is later: what is remembered by a clock that
// is behind would soon be forgotten by one that is right.
func (s *status) latest() time.Time {
	if now := time.Now(); now.After(s.time()) {
		return now
	}
	return s.time()
}

// clockStep is a difference that no delay of a look explains.
const clockStep = 3 * time.Second

// read notes the clock of the table. If it was set, some records may have expired there that
// have not: all are to be compared.
func (s *status) read(now time.Time) {
	if !s.at.IsZero() && now.Sub(s.time()).Abs() > clockStep {
		s.compareNow = true
	}
	s.was, s.at = now, time.Now()
}

// posted notes the epoch of a table that was written to.
func (s *status) posted(epoch string) {
	if s.epoch == "" {
		s.epoch = epoch
	}
	if s.epoch != epoch {
		s.compareNow = true
	}
}

// compareEvery is how often all records are compared with those of the table, without any
// reason: a failover can lose some unseen.
const compareEvery = 30 * time.Second

// Status is what a board knows of its table.
type Status struct {
	// Version of the table that is in force here; 0 if nothing was ever ordered.
	Version int64
	// Pending is how many orders of this instance the table does not have yet.
	Pending int
	// Since is when the table could not be looked at any more, and Why; zero if it can.
	Since time.Time
	Why   error
}

// Status returns what is known of the table.
func (b *Board) Status() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Status{Version: b.is.version, Pending: len(b.pending), Since: b.is.failedAt, Why: b.is.why}
}

// Version of the table that is in force here, and whether this board follows it.
func (b *Board) Version() (version int64, follows bool) {
	return b.is.applied.Load(), b.table != nil && b.is.started.Load()
}
