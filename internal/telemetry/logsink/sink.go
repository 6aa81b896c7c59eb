// Package logsink buffers the lines of a log and writes them on one goroutine, so that
// logging never waits for the reader. Lines that find no room are dropped and counted: a
// stalled reader or a full disk costs lines, never a request.
//
// It does not interpret lines. Start with [Open] or [New].
package logsink

import (
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Options of a [Sink]. The zero value is right for a log of few lines.
type Options struct {
	// Bound is how many bytes may wait to be written; 0 means DefaultBound.
	Bound int
	// Delay is how long a line may wait for others, so that they are written
	// together, unless there are FlushAt bytes of them; 0 waits for none.
	Delay time.Duration
	// OnTrouble is told once when lines cannot be written, or begin to be dropped:
	// err is nil when the reader stands still. It is called by whoever notices, must
	// not wait, and must not log to this Sink.
	OnTrouble func(err error)
	// OnRecovery is told when lines have been written for a second without trouble:
	// how many were dropped, and how long it took. It may log to this Sink.
	OnRecovery func(dropped uint64, after time.Duration)
}

const (
	// DefaultBound is enough for the longest stutter of a reader, some ten thousand
	// lines, and little beside the counters.
	DefaultBound = 4 << 20
	// FlushAt is how many bytes are written at once.
	FlushAt = 64 << 10
	// tryAgain is how long a writer that has failed is left alone.
	tryAgain = 100 * time.Millisecond
	// calm is how long nothing has to go wrong for trouble to be over, so that a reader
	// that is only too slow is not told of with every write.
	calm = time.Second
)

// Stats are counts since the Sink was made.
type Stats struct {
	Dropped uint64 // lines that found no room
	Errors  uint64 // writes that failed
}

// Sink is an io.Writer of whole lines that never waits. Use [Open] or [New].
type Sink struct {
	o    Options
	path string // that Reopen opens; "" means none

	wake chan struct{} // there is something to write
	full chan struct{} // there is enough to write at once
	end  chan struct{} // closed by Close
	done chan struct{} // closed when all is written, or given up

	dropped, errors atomic.Uint64
	written         atomic.Uint64 // bytes, to see progress by

	mu      sync.Mutex
	pending []byte    // under mu: whole lines, but for the rest of a torn one at the start
	spare   []byte    // under mu: to be pending next; nil means being written
	writing int       // under mu: bytes of what is being written
	next    io.Writer // under mu: to write to from now on; nil means as before
	torn    bool      // under mu: pending begins within a line
	trouble time.Time // under mu: since when; zero means there is none
	latest  time.Time // under mu: when something went wrong last
	before  uint64    // under mu: dropped before the trouble
	looking bool      // under mu: lookAgain is about to be called
	closed  bool      // under mu

	to io.Writer // of the goroutine
}

// New returns a Sink that writes to w, which it does not close.
func New(w io.Writer, o Options) *Sink { return start(w, "", o) }

func start(w io.Writer, path string, o Options) *Sink {
	if o.Bound <= 0 {
		o.Bound = DefaultBound
	}
	room := 4 << 10
	if o.Delay > 0 { // it is a log of many lines
		room = FlushAt + FlushAt/2
	}
	s := &Sink{
		o: o, path: path, to: w, pending: make([]byte, 0, room), spare: make([]byte, 0, room),
		wake: make(chan struct{}, 1), full: make(chan struct{}, 1), end: make(chan struct{}), done: make(chan struct{}),
	}
	go s.run()
	return s
}

// Write takes whole lines. It copies them, and never fails: what finds no room is
// dropped, and counted as one line.
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

// beginLocked notes that there is trouble, and reports whether that is news.
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

// Stats tells what happened so far.
func (s *Sink) Stats() Stats { return Stats{Dropped: s.dropped.Load(), Errors: s.errors.Load()} }

// Close writes what waits, as long as the reader reads: it gives up when nothing moves
// for the time given. What is written later is dropped.
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
