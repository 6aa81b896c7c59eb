// Package logsink buffers the lines of a log and writes them on one goroutine, so that logging
// never waits for a reader. Lines without room are dropped and counted: a blocked reader or a full
// disk costs lines, never a request.
//
// It does not interpret lines. Start with [Open] or [New].
package logsink

import (
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Options of a [Sink]. The zero value suits a log of few lines.
type Options struct {
	// Bound is how many bytes may be waiting; 0 means DefaultBound.
	Bound int
	// Delay is how long a line may wait for others, to be written together, unless FlushAt bytes
	// are waiting; 0 writes at once.
	Delay time.Duration
	// OnTrouble is called once when lines cannot be written, or begin to be dropped: err is nil if
	// the reader is blocked. It may be called on any goroutine, must not block, and must not log to
	// this Sink.
	OnTrouble func(err error)
	// OnRecovery is called when writing has worked for a second: with how many lines were dropped,
	// and how long the trouble lasted. It may log to this Sink.
	OnRecovery func(dropped uint64, after time.Duration)
}

const (
	// DefaultBound suffices for the longest pause of a reader, some ten thousand lines, and is
	// small compared with the counters.
	DefaultBound = 4 << 20
	// FlushAt is how many bytes are written at once.
	FlushAt = 64 << 10
	// tryAgain is the pause after a failed write.
	tryAgain = 100 * time.Millisecond
	// calm is for how long nothing must fail until trouble is over, so that a slow reader is not
	// reported with every write.
	calm = time.Second
)

// Stats are counts since the Sink was created.
type Stats struct {
	Dropped uint64 // lines without room
	Errors  uint64 // writes that failed
}

// Sink is an io.Writer of whole lines that never blocks. Use [Open] or [New].
type Sink struct {
	o    Options
	path string // opened by Reopen; "" means none

	wake chan struct{} // there are lines to write
	full chan struct{} // there are enough lines to write at once
	end  chan struct{} // closed by Close
	done chan struct{} // closed when everything is written, or given up

	dropped, errors atomic.Uint64
	written         atomic.Uint64 // bytes; shows progress

	mu      sync.Mutex
	pending []byte    // under mu: whole lines, except that a torn one may be first
	spare   []byte    // under mu: the next pending; nil while it is being written
	writing int       // under mu: bytes being written
	next    io.Writer // under mu: replaces to; nil means no change
	torn    bool      // under mu: pending begins in the middle of a line
	trouble time.Time // under mu: since when; zero means none
	latest  time.Time // under mu: when the last failure was
	before  uint64    // under mu: value of dropped before the trouble
	looking bool      // under mu: a call of lookAgain is scheduled
	closed  bool      // under mu

	to io.Writer // used by the goroutine alone
}

// New returns a Sink that writes to w, which it does not close.
func New(w io.Writer, o Options) *Sink { return start(w, "", o) }

func start(w io.Writer, path string, o Options) *Sink {
	if o.Bound <= 0 {
		o.Bound = DefaultBound
	}
	room := 4 << 10
	if o.Delay > 0 { // a log of many lines
		room = FlushAt + FlushAt/2
	}
	s := &Sink{
		o: o, path: path, to: w, pending: make([]byte, 0, room), spare: make([]byte, 0, room),
		wake: make(chan struct{}, 1), full: make(chan struct{}, 1), end: make(chan struct{}), done: make(chan struct{}),
	}
	go s.run()
	return s
}

// Write accepts whole lines. It copies them, and never fails: without room they are dropped, and
// counted as one line.
func (s *Sink) Write(lines []byte) (int, error) {
	s.mu.Lock()
	had := len(s.pending)
	if s.closed || had+s.writing+len(lines) > s.o.Bound {
		fresh := !s.closed && s.beginLocked()
		s.dropped.Add(1)
		s.mu.Unlock()
		if fresh && s.o.OnTrouble != nil {
			s.o.OnTrouble(nil)
		}
		return len(lines), nil
	}
	s.pending = append(s.pending, lines...)
	has := len(s.pending)
	s.mu.Unlock()
	if had == 0 {
		raise(s.wake)
	}
	if had < FlushAt && has >= FlushAt {
		raise(s.full)
	}
	return len(lines), nil
}

// beginLocked records trouble, and reports whether it is new.
func (s *Sink) beginLocked() bool {
	s.latest = time.Now()
	if !s.trouble.IsZero() {
		return false
	}
	s.trouble, s.before = s.latest, s.dropped.Load()
	return true
}

func raise(flag chan struct{}) {
	select {
	case flag <- struct{}{}:
	default:
	}
}

// Stats returns the counts so far.
func (s *Sink) Stats() Stats { return Stats{Dropped: s.dropped.Load(), Errors: s.errors.Load()} }

// Close writes the waiting lines, as long as the reader reads: it gives up if there is no progress
// for timeout. Later lines are dropped.
func (s *Sink) Close(timeout time.Duration) {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.end)
	}
	s.mu.Unlock()
	for {
		before := s.written.Load()
		select {
		case <-s.done:
			return
		case <-time.After(timeout):
			if s.written.Load() == before {
				return
			}
		}
	}
}
