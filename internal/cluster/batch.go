package cluster

import (
	"cmp"
	"context"
	"runtime"
	"sync"
	"time"

	"tidegate.dev/tidegate"
)

// eachTaker is a Store that decides about several checks in one call, each by itself.
type eachTaker interface {
	// AtOnce is how many; with 1 there is nothing to gain.
	AtOnce() int
	// TakeEach answers copies[i] of checks[i] in granted[i] and rest[i], as
	// TakeShort would; granted[i].Err says why there is no answer.
	TakeEach(ctx context.Context, checks []tidegate.Check, copies []int, granted, rest []tidegate.Decision) error
}

// batches are flights of one check each that share a call of the inner store. The
// goroutine that is to send them lets those run first who are about to come, and then
// takes who is there. While calls are under way, those who are fewer than can go at once
// wait for one of these to come back: with an inner store that is busy they would wait
// there. But they do not wait for one that is slow.
type batches struct {
	taker eachTaker // nil: every flight goes by itself
	most  int
	pool  sync.Pool // of *batch

	mu    sync.Mutex
	ready []*flight // under mu
	seen  bool      // under mu: somebody is on the way to take them
	calls int       // under mu: under way
	armed bool      // under mu: alarm is set
	alarm *time.Timer
	slow  time.Duration // so long they wait at most
}

// fewCalls are under way while nobody waits for one to come back: one that is being
// decided, and one that is on its way.
const fewCalls = 2

// batch is some of them.
type batch struct {
	flights       []*flight
	checks        []tidegate.Check
	copies        []int
	granted, rest []tidegate.Decision
}

func (b *batches) init(inner tidegate.Store, deadline time.Duration) {
	b.slow = deadline / 8
	if e, ok := inner.(eachTaker); ok && e.AtOnce() > 1 {
		b.taker, b.most = e, e.AtOnce()
	}
	b.pool.New = func() any {
		return &batch{granted: make([]tidegate.Decision, b.most), rest: make([]tidegate.Decision, b.most)}
	}
}

// launch has f flown, with others if it can.
func (s *Store) launch(f *flight) {
	b := &s.batches
	switch {
	case b.taker == nil, f.ways&together == 0, len(f.checks) != 1, f.checks[0].Limit.Identity() == "":
		s.hands.run(f.run)
	case b.put(f):
		s.hands.run(s.pilot)
	}
}

// put adds a flight, and reports whether somebody has to be sent for it.
func (b *batches) put(f *flight) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ready = append(b.ready, f)
	return b.sendLocked(false)
}

// sendLocked reports whether somebody has to be sent for those who are ready, which may
// have waited long enough.
func (b *batches) sendLocked(waited bool) bool {
	if b.seen || len(b.ready) == 0 {
		return false
	}
	if b.calls >= fewCalls && len(b.ready) < b.most && !waited {
		if !b.armed {
			b.armed = true
			b.alarm.Reset(b.slow)
		}
		return false
	}
	b.seen = true
	return true
}

// rang reports whether somebody has to be sent for those who have waited.
func (b *batches) rang() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.armed = false
	return b.sendLocked(true)
}

// take moves as many as can go at once, and reports whether somebody has to be sent for
// the others.
func (b *batches) take(to *batch) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.ready), b.most)
	to.flights = append(to.flights[:0], b.ready[:n]...)
	left := copy(b.ready, b.ready[n:])
	clear(b.ready[left:])
	b.ready = b.ready[:left]
	b.seen = false
	b.calls++
	return b.sendLocked(false)
}

// back is told that a call has come back, and reports whether somebody has to be sent.
func (b *batches) back() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls--
	return b.sendLocked(false)
}

// flyAnyway is flyReady for those who have waited for calls that are slow.
func (s *Store) flyAnyway() {
	if s.batches.rang() {
		s.hands.run(s.flyReady)
	}
}

// flyTogether is flyReady, after all who are about to ask.
func (s *Store) flyTogether() {
	runtime.Gosched()
	s.flyReady()
}

// flyReady takes flights that are ready, until it is not needed any more.
func (s *Store) flyReady() {
	all := s.batches.pool.Get().(*batch)
	for again := true; again; {
		if s.batches.take(all) {
			s.hands.run(s.flyReady)
		}
		again = s.fly(all)
		if s.batches.back() || again {
			again = true
			runtime.Gosched() // those who were told may want the same again
		}
	}
	s.batches.pool.Put(all)
}

// fly asks for a batch and gives the answers. It reports whether some are ready again
// that nobody else takes.
func (s *Store) fly(all *batch) (again bool) {
	defer all.clear()
	if len(all.flights) == 1 {
		f := all.flights[0]
		return s.landed(f, f.answer())
	}
	aboard := all.flights[:0]
	for _, f := range all.flights {
		n := f.board()
		if n == 0 {
			again = s.landed(f, answer{}) || again
			continue
		}
		aboard = append(aboard, f)
		all.checks, all.copies = append(all.checks, f.checks[0]), append(all.copies, n)
	}
	err := s.takeEach(all, aboard)
	for i, f := range aboard {
		a := answer{all.granted[i], all.rest[i], cmp.Or(err, all.granted[i].Err)}
		again = s.landed(f, a) || again
	}
	return again
}

// takeEach calls the inner store, once.
func (s *Store) takeEach(all *batch, aboard []*flight) (err error) {
	defer recovered(&err)
	if len(aboard) == 0 {
		return nil
	}
	s.count.calls.Add(1)
	sent := s.stamp()
	for _, f := range aboard {
		f.sent = sent
	}
	return s.batches.taker.TakeEach(s.deadline(), all.checks, all.copies, all.granted[:len(aboard)], all.rest[:len(aboard)])
}

// landed gives f's answer, and reports whether f is to fly again and somebody has to see
// to it.
func (s *Store) landed(f *flight, a answer) bool {
	if !f.land(&a) {
		f.end()
		return false
	}
	return s.batches.put(f)
}

// clear forgets everything, so that nothing is kept alive.
func (b *batch) clear() {
	clear(b.flights[:cap(b.flights)])
	clear(b.checks)
	clear(b.granted)
	clear(b.rest)
	b.flights, b.checks, b.copies = b.flights[:0], b.checks[:0], b.copies[:0]
}
