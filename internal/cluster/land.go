package cluster

import (
	"fmt"
	"runtime"

	"tidegate.dev/tidegate"
)

// leave reports whether w leaves without an answer; otherwise it has one. A flight that
// is not back in time is not to be waited for: whoever comes next asks anew.
func (w *waiter) leave() bool {
	w.lane.mu.Lock()
	defer w.lane.mu.Unlock()
	if w.line == nil {
		return false
	}
	w.line.remove(w)
	if f := w.flight; f.overdue() {
		f.unlistLocked()
	}
	return true
}

// overdue reports whether the call under way is not back in time.
func (f *flight) overdue() bool { return f.store.now() >= f.due }

func (f *flight) unlistLocked() {
	if f.known {
		f.known = false
		delete(f.lane.flights, f.hash)
	}
}

// fly asks for those aboard until nobody waits.
func (f *flight) fly() {
	for {
		a := f.answer()
		more := f.land(&a)
		f.told.wake()
		if !more {
			break
		}
		runtime.Gosched() // those who were told may want the same again
	}
	f.end()
}

// end lets f be used again.
func (f *flight) end() {
	s := f.store
	f.clear()
	f.ways, f.lane = 0, nil
	s.flying.Add(-1)
	s.flights.Put(f)
}

// answer asks for those aboard, if there are any.
func (f *flight) answer() (a answer) {
	if n := f.board(); n > 0 {
		a.granted, a.rest, a.err = f.ask(n)
	}
	return a
}

// board is how many copies those aboard ask for, with all who came before the call.
func (f *flight) board() int {
	f.lane.mu.Lock()
	defer f.lane.mu.Unlock()
	f.boardLocked()
	f.due = f.store.now() + f.store.o.Deadline
	return f.aboard.copies
}

// boardLocked has those who wait for the next call go aboard, behind those who have to ask
// again.
func (f *flight) boardLocked() {
	if f.aboard.first == nil {
		f.aboard, f.next = f.next, f.aboard
		return
	}
	for f.next.first != nil {
		w := f.next.first
		f.next.remove(w)
		f.aboard.push(w)
	}
}

// ask calls the inner store, once.
func (f *flight) ask(n int) (granted, rest tidegate.Decision, err error) {
	defer recovered(&err)
	s := f.store
	s.count.calls.Add(1)
	f.sent = s.stamp()
	ctx := s.deadline()
	if n > 1 && s.short != nil && f.ways&together != 0 {
		return s.short.TakeShort(ctx, f.checks, n)
	}
	granted, err = s.inner.Take(ctx, f.checks, n)
	return granted, rest, err
}

// recovered turns a panic into an error: on a goroutine of ours nobody else could
// recover from it.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the store panicked: %v", p)
	}
}

// answer is what the inner store said.
type answer struct {
	granted tidegate.Decision
	rest    tidegate.Decision // to those for whom there is nothing; it may not be known
	err     error
}

// refusal is what they are told, or nil: they have to ask again.
func (a *answer) refusal() *tidegate.Decision {
	switch {
	case a.granted.Granted <= 0:
		return &a.granted
	case a.rest.Limit != nil:
		return &a.rest
	}
	return nil
}

// land gives those aboard their answers, and readies the next call if there is more.
func (f *flight) land(a *answer) (more bool) {
	refusal, known := a.refusal(), false
	if a.err == nil && refusal != nil {
		known = f.remember(refusal)
	}
	f.lane.mu.Lock()
	defer f.lane.mu.Unlock()
	left := a.granted.Granted
	f.tellLocked(f.aboard, a, refusal, &left)
	if a.err == nil {
		f.giveLocked(&a.granted, left)
		if known { // those who came meanwhile would be told the same
			f.tellLocked(f.next, a, refusal, new(int64))
		}
	}
	if n := f.told.count; n > 1 {
		f.store.count.shared.Add(uint64(n))
	}
	f.boardLocked()
	if more = f.aboard.first != nil; !more {
		f.unlistLocked()
		f.unwatchLocked()
	}
	return more
}

// tellLocked gives answers to a line: what is left of the grants, then the refusal, and
// none if there is no refusal.
func (f *flight) tellLocked(l *line, a *answer, refusal *tidegate.Decision, left *int64) {
	for w := l.first; w != nil; w = l.first {
		switch {
		case a.err != nil:
			w.d, w.err = tidegate.Decision{}, a.err
		case *left > 0:
			w.d = a.granted
			w.d.Granted = min(int64(w.n), *left)
			*left -= w.d.Granted
		case refusal != nil:
			w.d = *refusal
		default:
			return
		}
		if f.ways&together == 0 && a.err == nil {
			f.copyOver(w.checks)
		}
		f.told.take(w)
	}
}

// giveLocked gives what is left of the grants, because somebody has left, to those who
// came meanwhile. Who wants more than that asks: there may be enough.
func (f *flight) giveLocked(d *tidegate.Decision, left int64) {
	for w := f.next.first; w != nil && int64(w.n) <= left; w = f.next.first {
		w.d = *d
		w.d.Granted = int64(w.n)
		left -= w.d.Granted
		f.told.take(w)
	}
}

// copyOver writes into the caller's checks which of the advisory ones were over.
func (f *flight) copyOver(checks []tidegate.Check) {
	for i := range checks {
		if checks[i].Advisory {
			checks[i].Over = f.checks[i].Over
		}
	}
}
