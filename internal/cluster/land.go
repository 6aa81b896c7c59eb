package cluster

import (
	"fmt"
	"math/bits"
	"runtime"

	"tidegate.dev/tidegate"
)

// overdue reports whether the call under way is not back in time.
func (f *flight) overdue() bool { return f.boarded && f.store.now() >= f.due }

// fly asks for those aboard until nobody waits.
func (f *flight) fly() {
	for {
		a := f.answer()
		if !f.land(&a) {
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

// board is how many copies those aboard ask for.
func (f *flight) board() int {
	f.lane.mu.Lock()
	defer f.lane.mu.Unlock()
	f.boarded = true
	f.due = f.store.now() + f.store.o.Deadline
	return f.aboard.waiting() * f.copies
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

// grant is what one of those is told for whom there is enough.
func (a *answer) grant() *tidegate.Decision {
	if a.granted.Granted <= 0 {
		return nil
	}
	d := a.granted
	d.Granted = 1
	return &d
}

// refusal is what the others are told, or nil: they have to ask again.
func (a *answer) refusal() *tidegate.Decision {
	if a.granted.Granted <= 0 {
		d := a.granted
		return &d
	}
	if a.rest.Limit == nil {
		return nil
	}
	d := a.rest
	return &d
}

// land gives those aboard their answers. It reports whether there is more to ask for.
func (f *flight) land(a *answer) (more bool) {
	if a.err != nil {
		a.granted, a.rest = tidegate.Decision{}, tidegate.Decision{}
	}
	grant, refusal, known := a.grant(), a.refusal(), false
	if a.err == nil && refusal != nil {
		known = f.remember(refusal)
	}
	f.store.deny.pass(f.sent.at)
	f.lane.mu.Lock()
	first, second := f.aboard, f.next
	if f.ways&together == 0 {
		f.tellSoleLocked(a)
	} else {
		f.tellLocked(a, grant, refusal, known)
	}
	f.boarded = false
	if more = f.aboard != nil; !more {
		f.goneLocked()
	}
	f.lane.mu.Unlock()
	f.store.wakeLeg(first)
	if second != nil {
		f.store.wakeLeg(second)
	}
	return more
}

// tellLocked tells the first of those aboard the grant, as far as there is enough, and
// the others the refusal; without one they have to ask again. A grant whose waiter has
// left goes to those who came meanwhile, and so does a refusal that they would find.
func (f *flight) tellLocked(a *answer, grant, refusal *tidegate.Decision, known bool) {
	first, second := f.aboard, f.next
	told := first.waiting()
	spare := first.serve(grant, int(a.granted.Granted))
	f.aboard, f.next = second, nil
	if a.err != nil || refusal != nil || first.waiting() == 0 {
		first.conclude(refusal, a.err)
	} else {
		told = first.served
		f.aboard, f.next = first.moveLocked(), second
	}
	if second != nil && a.err == nil && (spare > 0 || known) {
		before := second.waiting()
		second.serve(grant, spare)
		if known || second.waiting() == 0 {
			told += before
			second.conclude(refusal, nil)
			f.aboard = nil
		} else {
			told += second.served
			f.aboard = second.moveLocked()
		}
	}
	if told > 1 {
		f.store.count.shared.Add(uint64(told))
	}
}

// tellSoleLocked tells the only one aboard what was said.
func (f *flight) tellSoleLocked(a *answer) {
	l, d := f.aboard, a.granted
	if a.err == nil {
		f.copyOver(l.sole)
	}
	l.conclude(&d, a.err)
	f.aboard = nil
}

// wakeLeg wakes those who wait for a leg that is done. Those who fell asleep elsewhere come
// first; see track.
func (s *Store) wakeLeg(l *leg) {
	if !l.done.Load() {
		return
	}
	here := s.track()
	for rest := l.used &^ (1 << here); rest != 0; rest &= rest - 1 {
		l.told[bits.TrailingZeros8(rest)].Broadcast()
	}
	l.told[here].Broadcast()
	s.release(l)
}

// copyOver writes into the caller's checks which of the advisory ones were over.
func (f *flight) copyOver(checks []tidegate.Check) {
	for i := range checks {
		if checks[i].Advisory {
			checks[i].Over = f.checks[i].Over
		}
	}
}
