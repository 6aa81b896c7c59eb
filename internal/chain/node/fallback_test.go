package node

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
)

// limit has room for so many an hour, and a fallback.
func limit(name string, events int64, mode tidegate.FailMode) *tidegate.Limit {
	return tidegate.MustLimit(tidegate.Spec{
		Name: name, Events: events, Period: time.Hour, Algorithm: tidegate.FixedWindow,
		Terms: &tidegate.Terms{Rule: name, Handling: tidegate.Handling{OnStoreFailure: mode}},
	})
}

func one(l *tidegate.Limit) tidegate.Check { return tidegate.Check{Key: "k", Limit: l, Cost: 1} }

func advice(l *tidegate.Limit) tidegate.Check {
	c := one(l)
	c.Advisory = true
	return c
}

// One enforced check that fails closed refuses, those that go on locally decide
// together, the rest admit. Advice decides nothing.
func TestFallbackOfVectors(t *testing.T) {
	open, closed := limit("open", 5, tidegate.FailOpen), limit("closed", 5, tidegate.FailClosed)
	local, tight := limit("local", 5, tidegate.FailLocal), limit("tight", 1, tidegate.FailLocal)
	bare := tidegate.MustLimit(tidegate.Spec{Name: "bare", Events: 2, Period: time.Hour})
	f := func(o Options, asks int, admitted int64, last *tidegate.Limit, byStore bool, checks ...tidegate.Check) {
		t.Helper()
		o.Deadline = patient
		g := newNode(&faulty{fault: broken}, o)
		defer g.Close()
		var d tidegate.Decision
		var passed int64
		for range asks {
			var err error
			if d, err = g.Take(t.Context(), checks, 1); err != nil {
				t.Fatal(err)
			}
			passed += d.Granted
			if d.OK != (d.Granted > 0) || !byFallback(&d) {
				t.Errorf("%+v", d)
			}
		}
		if passed != admitted || d.Limit != last {
			t.Errorf("%d admitted, the last by %v; want %d by %v", passed, d.Limit, admitted, last)
		}
		if (d.Err == nil) != byStore || d.Err != nil && !errors.Is(d.Err, errBroken) {
			t.Errorf("reason %v", d.Err)
		}
		if !d.OK && d.Err != nil && d.RetryAfter != time.Second {
			t.Errorf("denied, retry after %s", d.RetryAfter)
		}
		if !d.OK && d.Err == nil && (d.RetryAfter <= 0 || d.RetryAfter > time.Hour) {
			t.Errorf("refused, retry after %s", d.RetryAfter)
		}
	}
	f(Options{}, 9, 9, nil, false)
	f(Options{}, 9, 9, open, false, one(open))
	f(Options{}, 9, 0, closed, false, one(closed))
	f(Options{}, 9, 5, local, true, one(local))
	f(Options{}, 9, 1, tight, true, one(local), one(tight))
	f(Options{}, 9, 0, closed, false, one(open), one(local), one(closed))
	f(Options{}, 9, 5, local, true, one(open), one(local))
	f(Options{}, 9, 9, open, false, one(open), advice(closed), advice(tight))
	f(Options{}, 9, 9, nil, false, advice(closed))
	f(Options{}, 9, 2, bare, true, one(bare))
	f(Options{Default: tidegate.FailOpen}, 9, 9, bare, false, one(bare))
	f(Options{Default: tidegate.FailClosed}, 9, 0, bare, false, one(bare))
	f(Options{Default: tidegate.FailClosed}, 9, 5, local, true, one(local))
	unsaid := limit("unsaid", 5, tidegate.FailDefault)
	f(Options{}, 9, 5, unsaid, true, one(unsaid))
	f(Options{Default: tidegate.FailOpen}, 9, 9, unsaid, false, one(unsaid))
	f(Options{Default: tidegate.FailClosed}, 9, 0, unsaid, false, one(unsaid))
	f(Options{Instances: func() int { return 2 }}, 9, 2, local, true, one(local))
	f(Options{Instances: func() int { return -7 }}, 9, 5, local, true, one(local))
}

// A vector that is denied charges nothing locally.
func TestDeniedIsNotCharged(t *testing.T) {
	local, closed := limit("local", 5, tidegate.FailLocal), limit("closed", 5, tidegate.FailClosed)
	g := newNode(&faulty{fault: broken}, Options{Deadline: patient})
	defer g.Close()
	for range 9 {
		_, _ = g.Take(t.Context(), []tidegate.Check{one(local), one(closed)}, 1)
	}
	if d, _ := g.Take(t.Context(), []tidegate.Check{one(local)}, 1); d.Remaining != 4 {
		t.Errorf("%+v, want 4 remaining", d)
	}
	if h := g.Health(); h.Closed != 9 || h.Admitted != 1 {
		t.Errorf("%+v", h)
	}
}

// Advisory checks tell whether they are over, of whatever fallback.
func TestFallbackTellsWhoIsOver(t *testing.T) {
	local, shadow, other := limit("local", 5, tidegate.FailLocal), limit("shadow", 2, tidegate.FailLocal), limit("other", 1, tidegate.FailOpen)
	g := newNode(&faulty{fault: broken}, Options{Deadline: patient})
	defer g.Close()
	checks := []tidegate.Check{advice(other), advice(shadow), one(local)}
	for i := range 4 {
		checks[0].Over = true // left there by somebody
		if d, err := g.Take(t.Context(), checks, 1); err != nil || !d.OK {
			t.Fatalf("%+v, %v", d, err)
		}
		over := []bool{checks[0].Over, checks[1].Over, checks[2].Over}
		if !slices.Equal(over, []bool{false, i >= 2, false}) {
			t.Errorf("request %d: over %t", i+1, over)
		}
	}
}

// Copies are granted as far as the share goes.
func TestFallbackGrantsCopies(t *testing.T) {
	l := limit("local", 20, tidegate.FailLocal)
	g := newNode(&faulty{fault: broken}, Options{Deadline: patient, Instances: func() int { return 3 }})
	defer g.Close()
	if d, _ := g.Take(t.Context(), []tidegate.Check{one(l)}, 9); d.Granted != 6 || d.Remaining != 0 {
		t.Errorf("9 copies = %+v, want 6 granted, as a third of 20", d)
	}
	if d, _ := g.Take(t.Context(), []tidegate.Check{one(limit("open", 1, tidegate.FailOpen))}, 9); d.Granted != 9 {
		t.Errorf("9 copies = %+v, want all granted", d)
	}
}

// Misuse is told as such, also while the circuit is open, and is no failure.
func TestMisuseIsNoFailure(t *testing.T) {
	l := limit("local", 5, tidegate.FailLocal)
	deny := tidegate.MustLimit(tidegate.Spec{Name: "deny", Algorithm: tidegate.Deny})
	for _, is := range []fault{none, broken} {
		g := newNode(&faulty{fault: is}, Options{Deadline: patient})
		for range 10 {
			for _, c := range []tidegate.Check{{Key: "k", Limit: l, Cost: -1}, {Key: "k"}, one(deny), {Key: "k", Limit: new(tidegate.Limit)}} {
				if d, err := g.Take(t.Context(), []tidegate.Check{c}, 1); err == nil {
					t.Errorf("%+v = %+v, want an error", c, d)
				}
			}
			if d, err := g.Take(t.Context(), []tidegate.Check{one(l)}, 0); err == nil {
				t.Errorf("no copies = %+v, want an error", d)
			}
			if d, err := g.Reserve(t.Context(), []tidegate.Check{one(deny)}, time.Hour); err == nil {
				t.Errorf("reserved %+v, want an error", d)
			}
			if err := g.Settle(t.Context(), tidegate.Receipt{}, -1); err == nil {
				t.Error("settled at less than nothing")
			}
		}
		if h := g.Health(); h.State != OK || h.Errors != 0 {
			t.Errorf("%+v", h)
		}
		_ = g.Close()
	}
}

// What was taken locally is given back locally: a Gate's slots and charges by status
// do not reach the inner store, whose own they are not.
func TestReceiptsFindTheirStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		terms := &tidegate.Terms{Handling: tidegate.Handling{OnStoreFailure: tidegate.FailLocal}}
		slots := tidegate.MustLimit(tidegate.Spec{Name: "slots", Events: 2, Period: time.Minute, Algorithm: tidegate.Concurrency, Terms: terms})
		errs := tidegate.MustLimit(tidegate.Spec{Name: "errors", Events: 5, Period: time.Hour, Terms: &tidegate.Terms{
			AtEnd:    tidegate.AtEnd{Counts: []tidegate.StatusRange{{From: 500, To: 599}}},
			Handling: tidegate.Handling{OnStoreFailure: tidegate.FailLocal},
		}})
		way := &faulty{}
		g := newNode(way, Options{})
		gate := tidegate.NewGate(matched{one(slots), one(errs)}, g)
		held, before := gate.Enter(t.Context(), &tidegate.Request{})
		if !held.OK || byFallback(&held) {
			t.Fatalf("%+v", held)
		}
		way.set(broken)
		for range 20 { // one at a time
			d, visit := gate.Enter(t.Context(), &tidegate.Request{})
			if !d.OK || visit == nil {
				t.Fatalf("%+v", d)
			}
			time.Sleep(time.Millisecond)
			if err := visit.End(tidegate.Outcome{Status: 200}); err != nil || way.adjusted(d.Receipt) {
				t.Errorf("End: %v, or it reached the inner store", err)
			}
		}
		_, long := gate.Enter(t.Context(), &tidegate.Request{})
		time.Sleep(5 * time.Minute) // renewed meanwhile
		if d := tidegate.New(g, slots).Peek(t.Context(), "k"); d.Remaining != 1 {
			t.Errorf("%+v, want one slot left", d)
		}
		_ = long.End(tidegate.Outcome{Status: 500})
		if d := tidegate.New(g, errs).Peek(t.Context(), "k"); d.Remaining != 4 {
			t.Errorf("%+v, want 4 left", d)
		}
		if err := before.End(tidegate.Outcome{Status: 200}); !errors.Is(err, ErrOpen) {
			t.Errorf("what the inner store gave went back to %v", err)
		}
		if h := g.Health(); h.Backlog != 1 {
			t.Errorf("%+v, want the one error owed", h)
		}
		_ = g.Close()
	})
}

type matched []tidegate.Check

func (v matched) Match(_ *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	return append(dst, v...)
}

// A limit that gives way for a while is hard in an outage, also where instances go on by themselves: none knows who was
// above it, and for how long.
func TestNothingGivesWayInAnOutage(t *testing.T) {
	for _, a := range []tidegate.Algorithm{tidegate.SlidingLog, tidegate.SubWindows, tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingWindow} {
		for _, instances := range []int{1, 3} {
			testNothingGivesWay(t, a, instances)
		}
	}
}

func testNothingGivesWay(t *testing.T, a tidegate.Algorithm, instances int) {
	t.Helper()
	handling := tidegate.Handling{OnStoreFailure: tidegate.FailLocal}
	six := tidegate.MustLimit(tidegate.Spec{Name: "a", Events: 6, Period: time.Minute, Algorithm: a, Terms: &tidegate.Terms{MaxOver: 30 * time.Second, Handling: handling}})
	twelve := tidegate.MustLimit(tidegate.Spec{Name: "a", Scope: "ceiling", Events: 12, Period: time.Minute, Algorithm: a, Terms: &tidegate.Terms{Handling: handling}})
	n := newNode(&faulty{fault: broken}, Options{Deadline: patient, Instances: func() int { return instances }})
	gate := tidegate.NewGate(matched{{Key: "k", Limit: six, Cost: 1}, {Key: "k", Limit: twelve, Cost: 1}}, n)
	admitted := 0
	for range 20 {
		d := gate.Decide(t.Context(), &tidegate.Request{})
		if d.OK {
			admitted++
		}
		if d.Soft || d.Err != nil {
			t.Errorf("%s, %d instances: %+v", a, instances, d)
		}
	}
	if admitted != 6/instances {
		t.Errorf("%s, %d instances: %d admitted of 6 a minute", a, instances, admitted)
	}
	_ = n.Close()
}

// What was admitted without being counted leaves nothing to give back.
func TestReceiptOfWhatWasAllowed(t *testing.T) {
	slots := tidegate.MustLimit(tidegate.Spec{
		Name: "slots", Events: 2, Period: time.Minute, Algorithm: tidegate.Concurrency, Terms: &tidegate.Terms{Handling: tidegate.Handling{OnStoreFailure: tidegate.FailOpen}},
	})
	way := &faulty{}
	g := newNode(way, Options{Deadline: patient})
	defer g.Close()
	taken := tidegate.New(g, slots).Acquire(t.Context(), "k")
	way.set(broken)
	allowed := tidegate.New(g, slots).Acquire(t.Context(), "k")
	way.set(none)
	if !allowed.OK || allowed.Err == nil {
		t.Fatalf("%+v", allowed.Decision)
	}
	if err := g.Renew(t.Context(), allowed.Receipt, []tidegate.Check{one(slots)}); err != nil {
		t.Errorf("Renew: %v", err)
	}
	if err := allowed.Cancel(); err != nil {
		t.Errorf("Cancel: %v", err)
	}
	if d := tidegate.New(g, slots).Peek(t.Context(), "k"); d.Remaining != 1 {
		t.Errorf("%+v, want one of two slots still held", d)
	}
	_ = taken.Cancel()
}
