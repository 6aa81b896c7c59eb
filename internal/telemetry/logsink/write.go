package logsink

import (
	"bytes"
	"io"
	"time"
)

// run writes until Close.
func (s *Sink) run() {
	defer close(s.done)
	for {
		select {
		case <-s.wake:
			s.gather()
		case <-s.end:
		}
		if !s.flush() {
			return
		}
	}
}

// gather waits for more lines, so that they are written together.
func (s *Sink) gather() {
	if s.o.Delay <= 0 {
		return
	}
	delay := time.NewTimer(s.o.Delay)
	defer delay.Stop()
	select {
	case <-delay.C:
	case <-s.full:
	case <-s.end:
	}
}

// flush writes what is pending, and tries again after an error. It returns false if the Sink is
// closed and nothing more will be written.
func (s *Sink) flush() bool {
	for {
		lines, last := s.take()
		rest, err := s.put(lines)
		s.putBack(lines, rest)
		if err == nil {
			s.recovered(last)
			if !last || len(lines) == 0 {
				return !last // new lines may wait for more
			}
			continue
		}
		s.failed(err)
		if last { // after Close there is only one try
			return false
		}
		select {
		case <-time.After(tryAgain):
		case <-s.end:
		}
	}
}

// take returns the lines to write now, and whether the Sink is closed. If Reopen has opened another
// file, it is used from here on.
func (s *Sink) take() (lines []byte, closed bool) {
	s.mu.Lock()
	var before io.Writer
	if s.next != nil {
		before, s.to, s.next = s.to, s.next, nil
		if s.torn { // the line began in the previous file
			s.torn = false
			_, s.pending, _ = bytes.Cut(s.pending, []byte{'\n'})
			s.dropped.Add(1)
		}
	}
	lines, closed = s.pending, s.closed
	s.pending, s.spare, s.writing = s.spare[:0], nil, len(lines)
	s.mu.Unlock()
	if c, ok := before.(io.Closer); ok {
		_ = c.Close() // all of it was written, or reported as failed
	}
	return lines, closed
}

// put writes lines in parts, so that s.written shows progress, and returns what was not written.
func (s *Sink) put(lines []byte) (rest []byte, err error) {
	for len(lines) > 0 {
		part := lines
		if len(part) > FlushAt {
			part = part[:FlushAt]
			if end := bytes.LastIndexByte(part, '\n'); end >= 0 {
				part = part[:end+1] // so that other writers of the file see whole lines
			}
		}
		n, err := s.to.Write(part)
		s.written.Add(uint64(n))
		lines = lines[n:]
		if err != nil {
			return lines, err
		}
	}
	return nil, nil
}

// putBack puts rest, the unwritten end of lines, in front of the lines that have arrived since.
// There is room, since it was still counted. It keeps the memory of lines as spare.
func (s *Sink) putBack(lines, rest []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing = 0
	if wrote := len(lines) - len(rest); wrote > 0 {
		s.torn = lines[wrote-1] != '\n'
	}
	if len(rest) > 0 {
		n := copy(lines, rest)
		s.pending, lines = append(lines[:n], s.pending...), s.pending
	}
	if cap(lines) > 2*FlushAt { // do not keep the memory of an exceptional amount
		lines = make([]byte, 0, FlushAt)
	}
	s.spare = lines[:0]
}

// failed counts a failed write, and calls OnTrouble if this is the beginning of trouble.
func (s *Sink) failed(err error) {
	s.errors.Add(1)
	s.mu.Lock()
	fresh := s.beginLocked()
	s.mu.Unlock()
	if fresh && s.o.OnTrouble != nil {
		s.o.OnTrouble(err)
	}
}

// recovered is called after a successful write. It calls OnRecovery if nothing has failed for as
// long as calm; with last it does not wait for that.
func (s *Sink) recovered(last bool) {
	s.mu.Lock()
	since, before, quiet := s.trouble, s.before, time.Since(s.latest)
	over := !since.IsZero() && (last || quiet >= calm)
	if over {
		s.trouble = time.Time{}
	}
	look := !over && !since.IsZero() && !s.looking
	s.looking = s.looking || look
	s.mu.Unlock()
	if over && s.o.OnRecovery != nil {
		s.o.OnRecovery(s.dropped.Load()-before, time.Since(since))
	}
	if look { // there may be no further line
		time.AfterFunc(calm-quiet, s.lookAgain)
	}
}

// lookAgain wakes run, so that recovered is called again.
func (s *Sink) lookAgain() {
	s.mu.Lock()
	s.looking = false
	s.mu.Unlock()
	raise(s.wake)
}
