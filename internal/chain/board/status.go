package board

import (
	"sync/atomic"
	"time"
)

// status is what is known of the table. What is not atomic is under Board.mu.
type status struct {
	started atomic.Bool
	fresh   string       // the epoch to give to an empty table
	epoch   string       // of the table that version belongs to
	version int64        // of the table, up to which all changes are known here
	synced  time.Time    // when the last look succeeded
	applied atomic.Int64 // version as of the last look that succeeded, for readers without the lock

	compareNow bool      // the next look compares all records with the table
	compared   time.Time // when all records were last compared
	failedAt   time.Time // when looks began to fail; zero if the last one succeeded
	why        error     // the error of the last look
	told       bool      // the log says that looks fail

	was time.Time // what the clock of the table showed when it was last read
	at  time.Time // when that was, by the monotonic clock
}

// time returns the time by the clock of the table, or by that of this process if the former is not known.
func (s *status) time() time.Time {
	if s.at.IsZero() {
		return time.Now()
	}
	return s.was.Add(time.Since(s.at))
}

// latest returns the later of time and the clock of this process: what is kept by a clock that is
// behind would be forgotten too soon by one that is right.
func (s *status) latest() time.Time {
	if now := time.Now(); now.After(s.time()) {
		return now
	}
	return s.time()
}

// clockStep is a jump of the table's clock that the duration of a look does not explain.
const clockStep = 3 * time.Second

// read notes the clock of the table. If the clock was set, the table may have dropped records too
// early: all have to be compared.
func (s *status) read(now time.Time) {
	if !s.at.IsZero() && now.Sub(s.time()).Abs() > clockStep {
		s.compareNow = true
	}
	s.was, s.at = now, time.Now()
}

// posted notes the epoch that a table had when it was written to.
func (s *status) posted(epoch string) {
	if s.epoch == "" {
		s.epoch = epoch
	}
	if s.epoch != epoch {
		s.compareNow = true
	}
}

// compareEvery is how often all records are compared with the table even if nothing seems
// wrong: a failover can lose some unnoticed.
const compareEvery = 30 * time.Second

// Status is what a board knows of its table.
type Status struct {
	// Version is that of the table up to which this instance has all changes; 0 if nothing was ever
	// ordered, or the table has not been read.
	Version int64
	// Pending is how many records the table does not have yet.
	Pending int
	// Since is when looks at the table began to fail, and Why the last error; zero and nil if they succeed.
	Since time.Time
	Why   error
}

// Status returns what is known of the table.
func (b *Board) Status() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Status{Version: b.is.version, Pending: len(b.pending), Since: b.is.failedAt, Why: b.is.why}
}

// Version returns the version of the table up to which all changes are in force here, and reports
// whether this board follows the table.
func (b *Board) Version() (version int64, follows bool) {
	return b.is.applied.Load(), b.table != nil && b.is.started.Load()
}
