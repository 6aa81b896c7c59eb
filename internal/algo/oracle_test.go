package algo

import (
	"fmt"
	"strings"
	"testing"

	"tidegate.dev/tidegate"
)

// oracle says what a law must answer, by the definition of the algorithm: it
// keeps everything that happened and counts it anew each time.
type oracle interface {
	change(l *tidegate.Limit)
	// one decides a single copy at cost unit and charges it if asked to. at is
	// its receipt; wait is until it may go ahead.
	one(now, at, unit, maxWait int64, charge bool) (ok bool, wait int64)
	// refused tells of copies that were refused.
	refused(now, unit, copies int64)
	remaining(now, maxWait int64) int64
	giveBack(now, at, n int64)
	force(now, n int64)
	// clean reports whether nothing that happened counts any more.
	clean(now int64) bool
	clone() oracle
}

func newOracle(t testing.TB, l *tidegate.Limit) oracle {
	switch l.Algorithm {
	case tidegate.TokenBucket:
		return newTokenOracle(l)
	case tidegate.LeakyBucket:
		return newLeakyOracle(l)
	case tidegate.FixedWindow, tidegate.Quota:
		return &counterOracle{limit: l}
	case tidegate.SlidingLog:
		return &logOracle{limit: l}
	case tidegate.SlidingWindow:
		return &slidingOracle{limit: l}
	case tidegate.SubWindows:
		return &partsOracle{limit: l}
	case tidegate.Concurrency:
		return &leaseOracle{limit: l}
	}
	t.Fatalf("no oracle for %s", l)
	return nil
}

// askOracle lets copy after copy try.
func askOracle(o oracle, now, at int64, a Ask) (granted, wait int64) {
	if a.Cost <= 0 {
		ok, wait := o.one(now, at, 1, max(a.MaxWait, 0), false)
		if !ok {
			return 0, 0
		}
		return a.Copies, wait
	}
	for granted < a.Copies {
		ok, w := o.one(now, at+granted, a.Cost, max(a.MaxWait, 0), true)
		if !ok {
			break
		}
		if granted == 0 {
			wait = w
		}
		granted++
	}
	o.refused(now, a.Cost, a.Copies-granted)
	return granted, wait
}

// duel runs a law and its oracle side by side.
type duel struct {
	t        testing.TB
	limit    *tidegate.Limit
	law      subject
	oracle   oracle
	now      int64
	last     Verdict
	history  []string
	receipts []receipt
}

type receipt struct{ at, n int64 }

func newDuel(t testing.TB, l *tidegate.Limit, now int64) *duel {
	return &duel{t: t, limit: l, law: newSubject(t, l), oracle: newOracle(t, l), now: now}
}

func (d *duel) note(format string, args ...any) {
	d.history = append(d.history, fmt.Sprintf("+%-12d ", d.now-epoch)+fmt.Sprintf(format, args...))
}

func (d *duel) fail(format string, args ...any) {
	d.t.Helper()
	d.t.Fatalf("%s (parts %d, ceiling %v, count_rejected %v)\n%s\n=> %s", d.limit, d.limit.Parts, d.limit.Ceiling,
		d.limit.CountRejected, strings.Join(d.history, "\n"), fmt.Sprintf(format, args...))
}

func (d *duel) pass(ticks int64) { d.now = min(d.now+ticks, LastInstant) }

// take asks both and compares everything the verdict says.
func (d *duel) take(a Ask) Verdict {
	d.t.Helper()
	fits := d.law.fit(d.now, a)
	before := d.law.clone()
	v, at := d.law.take(d.now, a)
	d.note("take %+v: %+v", a, v)
	granted, wait := askOracle(d.oracle, d.now, at, a)
	d.last = v
	if v.Granted != granted || fits != granted {
		d.fail("granted %d, and Fit says %d: want %d", v.Granted, fits, granted)
	}
	if want := a.unit() > d.limit.Capacity(); v.Never() != want {
		d.fail("never is %v: want %v", v.Never(), want)
	}
	if granted > 0 && v.Wait() != wait {
		d.fail("wait %d: want %d", v.Wait(), wait)
	}
	if want := d.oracle.remaining(d.now, max(a.MaxWait, 0)); v.Remaining != want {
		d.fail("remaining %d: want %d", v.Remaining, want)
	}
	d.checkRetry(a, v)
	d.checkReset(v)
	d.checkOneByOne(before, a, v)
	if granted > 0 && a.Cost > 0 {
		d.receipts = append(d.receipts, receipt{at, a.Cost})
	}
	return v
}

// checkRetry: at it the same ask is admitted, a tick earlier it is refused.
func (d *duel) checkRetry(a Ask, v Verdict) {
	d.t.Helper()
	if v.Granted > 0 || v.Never() {
		if v.Retry() != 0 {
			d.fail("retry %d of an ask that need not or must not be made again", v.Retry())
		}
		return
	}
	if v.Retry() <= 0 {
		d.fail("refused with retry %d", v.Retry())
	}
	try := func(after int64, want bool) {
		d.t.Helper()
		at := d.now + after
		if k, _ := askOracle(d.oracle.clone(), at, at, a); k > 0 != want {
			d.fail("retry %d, yet after %d the oracle grants %d", v.Retry(), after, k)
		}
		if got, _ := d.law.clone().take(at, a); got.Granted > 0 != want {
			d.fail("retry %d, yet after %d the law says %+v", v.Retry(), after, got)
		}
	}
	try(v.Retry(), true)
	try(v.Retry()-1, false)
	try(v.Retry()/2, false)
	try(v.Retry()-v.Retry()/16-1, false)
}

// checkReset: at it the key is as good as new, a tick earlier it is not.
func (d *duel) checkReset(v Verdict) {
	d.t.Helper()
	at := d.now + v.Reset
	if v.Reset < 0 || !d.oracle.clean(at) || !d.law.idle(at) {
		d.fail("reset %d: oracle clean %v, law idle %v", v.Reset, d.oracle.clean(at), d.law.idle(at))
	}
	if v.Reset > 0 && (d.oracle.clean(at-1) || d.law.idle(at-1)) {
		d.fail("reset %d is late: a tick earlier oracle clean %v, law idle %v", v.Reset, d.oracle.clean(at-1), d.law.idle(at-1))
	}
	peek := Ask{Copies: 1}
	got, _ := d.law.clone().take(at, peek)
	want, _ := newSubject(d.t, d.limit).take(at, peek)
	if got != want {
		d.fail("at reset %d the verdict is %+v, that of a new key %+v", v.Reset, got, want)
	}
}

// checkOneByOne: copies asked for at once do the same as asked for in turn.
func (d *duel) checkOneByOne(k subject, a Ask, v Verdict) {
	d.t.Helper()
	if a.Copies == 1 || a.Copies > 8 {
		return
	}
	var granted int64
	for range a.Copies {
		one, _ := k.take(d.now, Ask{Cost: a.Cost, Copies: 1, MaxWait: a.MaxWait})
		granted += one.Granted
	}
	peek := Ask{Copies: 1, MaxWait: a.MaxWait}
	got, _ := k.take(d.now, peek)
	want, _ := d.law.clone().take(d.now, peek)
	if granted != v.Granted || got != want {
		d.fail("one by one %d pass and leave %+v: want %d and %+v", granted, got, v.Granted, want)
	}
}

func (d *duel) giveBack(at, n int64) {
	d.note("give back %d taken at +%d", n, at-epoch)
	d.law.giveBack(d.now, at, n)
	d.oracle.giveBack(d.now, at, n)
}

func (d *duel) force(n int64) {
	d.note("force %d", n)
	d.law.force(d.now, n)
	d.oracle.force(d.now, n)
}

func (d *duel) change(l *tidegate.Limit) {
	d.note("change to %s", l)
	d.limit = l
	d.law.change(l)
	d.oracle.change(l)
}

// play lets the tape choose what happens.
func (d *duel) play(t *tape, period, em int64) {
	d.t.Helper()
	for range 64 {
		if t.done() {
			break
		}
		d.pass(t.step(period, d.last))
		switch op := t.byte() % 16; {
		case op < 10:
			d.take(t.ask(d.limit.Capacity(), em))
		case op < 12 && len(d.receipts) > 0:
			r := d.receipts[int(t.byte())%len(d.receipts)]
			d.giveBack(r.at, t.pick(r.n, 1, r.n+1))
		case op == 12:
			d.force(t.pick(1, 2, d.limit.Capacity(), 1<<62))
		case op == 13 && d.limit.Algorithm != tidegate.TokenBucket && d.limit.Algorithm != tidegate.LeakyBucket:
			spec := d.limit.Spec
			spec.Events = max(1, t.pick(spec.Events*2, spec.Events/2, spec.Events+1, 1, 7, 10_000))
			if l, err := tidegate.NewLimit(spec); err == nil {
				d.change(l)
			}
		case op == 14:
			d.take(Ask{Copies: 1 + t.upTo(2)})
		}
	}
	d.take(Ask{Copies: 1})
}
