package node

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// picky is a store that works and cannot be asked about some keys.
type picky struct {
	*memory.Store
	err atomic.Pointer[error]
}

func newPicky(err error) *picky {
	p := &picky{Store: memory.New()}
	p.err.Store(&err)
	return p
}

func (p *picky) cannot(checks []tidegate.Check) error {
	for _, c := range checks {
		if err := *p.err.Load(); c.Key == "bad" && err != nil {
			return err
		}
	}
	return nil
}

func (p *picky) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	if err := p.cannot(checks); err != nil {
		return tidegate.Decision{}, err
	}
	return p.Store.Take(ctx, checks, n)
}

func (p *picky) Adjust(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	if err := p.cannot(checks); err != nil {
		return err
	}
	return p.Store.Adjust(ctx, r, checks)
}

var errWrongType = fmt.Errorf("WRONGTYPE: %w", tidegate.ErrCannotAsk)

// One key that cannot be asked about, asked often, is nobody else's trouble: the circuit
// stays closed, health names the rule, what was admitted meanwhile is charged in the end.
func TestOneKeyThatCannotBeAskedAbout(t *testing.T) {
	for _, entries := range []int{0, -1} { // with and without remembered refusals
		synctest.Test(t, func(t *testing.T) {
			var told []Unasked
			inner := newPicky(errWrongType)
			g := newNode(inner, Options{Deadline: patient, DenyEntries: entries, OnUnasked: func(u Unasked) { told = append(told, u) }})
			defer g.Close()
			l := limit("login", 5, tidegate.FailLocal)
			ask := func(key string) tidegate.Decision {
				t.Helper()
				d, err := g.Take(t.Context(), []tidegate.Check{{Key: key, Limit: l, Cost: 1}}, 1)
				if err != nil {
					t.Fatal(err)
				}
				return d
			}
			passed := 0
			for i := range 500 {
				if ask("bad").OK {
					passed++
				}
				if d := ask(fmt.Sprint("good", i)); d.Err != nil || !d.OK {
					t.Fatalf("somebody else: %+v", d)
				}
				time.Sleep(time.Millisecond)
			}
			h := g.Health()
			if h.State != OK || h.Rejected < 500 || h.Errors != 0 || passed != 5 {
				t.Errorf("%d admitted of 5; %+v", passed, h)
			}
			if len(h.Unasked) != 1 || h.Unasked[0].Rule != "login" || h.Unasked[0].Over || h.Unasked[0].Count != 500 || !errors.Is(h.Unasked[0].Why, tidegate.ErrCannotAsk) {
				t.Errorf("health says %+v", h.Unasked)
			}
			inner.err.Store(new(error))
			time.Sleep(time.Second) // what is owed is paid
			if ask("bad").OK {
				t.Error("admitted again when it can be asked about")
			}
			time.Sleep(2 * unaskedHold)
			synctest.Wait()
			if len(told) != 2 || told[0].Over || !told[1].Over {
				t.Errorf("told %+v, want the beginning and the end", told)
			}
			if h := g.Health(); !h.Unasked[0].Over {
				t.Errorf("health says %+v", h.Unasked)
			}
		})
	}
}

// A post that cannot be charged keeps no other from it, whether it is of a key that is used up or not.
func TestUnpayableAmountIsSetAside(t *testing.T) {
	for _, events := range []int64{3, 100} {
		synctest.Test(t, func(t *testing.T) {
			inner := newPicky(errWrongType)
			g := newNode(inner, Options{Deadline: patient})
			defer g.Close()
			l := limit("l", events, tidegate.FailLocal)
			g.mu.Lock()
			for i := range 20 {
				g.server(0).backlog.add(&tidegate.Check{Key: fmt.Sprint(i), Limit: l}, 1, 1, 1, 1, g.now())
			}
			for used := range int64(3) {
				g.server(0).backlog.add(&tidegate.Check{Key: "bad", Limit: l}, 1, 1, used+1, 1, g.now())
			}
			g.server(0).repayLocked()
			g.mu.Unlock()
			time.Sleep(50 * time.Millisecond)
			if events == 3 { // it is in the first round alone
				time.Sleep(2 * postPause)
			}
			if h := g.Health(); h.Posted != 20 || h.Backlog != 1 || h.State != OK {
				t.Errorf("3 of %d cannot be charged: %+v, want 20 posted and 1 owed", events, h)
			}
			time.Sleep(5 * time.Minute) // it is given up
			if h := g.Health(); h.Backlog != 0 || h.Lost == 0 {
				t.Errorf("3 of %d cannot be charged: %+v, want nothing owed", events, h)
			}
		})
	}
}

type busyBelow struct{}

func (busyBelow) Error() string { return "busy" }
func (busyBelow) Busy() bool    { return true }

// Calls that a layer below did not make are counted as busy. The limit fails open, so nothing is
// owed, and no payment is counted beside the three.
func TestBusyIsCounted(t *testing.T) {
	inner := newPicky(fmt.Errorf("wrapped: %w", busyBelow{}))
	g := newNode(inner, Options{Deadline: patient})
	defer g.Close()
	for range 3 {
		if _, err := g.Take(t.Context(), []tidegate.Check{{Key: "bad", Limit: limit("l", 5, tidegate.FailOpen), Cost: 1}}, 1); err != nil {
			t.Fatal(err)
		}
	}
	if h := g.Health(); h.Busy != 3 || h.Errors != 0 || h.Timeouts != 0 {
		t.Errorf("%+v, want 3 busy", h)
	}
}

// However long a process runs, the time does not spill into the counts.
func TestSeenAfterYears(t *testing.T) {
	const day = 24 * time.Hour
	for _, uptime := range []time.Duration{day, 198 * day, 199 * day, 397 * day, 398 * day, 10 * 365 * day, 40 * 365 * day, 200 * 365 * day} {
		s := newSeen(64)
		s.note(7, 60, 100, uptime)
		used, when, _ := s.look(7)
		if used != 60 || when > uptime || uptime < 30*365*day && uptime-when > 100*time.Millisecond {
			t.Errorf("after %s: %d used, %s ago; want 60, now", uptime, used, uptime-when)
		}
		s.note(7, 61, 64, uptime+time.Second)
		if used, _, _ := s.look(7); uptime < 30*365*day && used != 61 {
			t.Errorf("after %s and a second: %d used, want 61", uptime, used)
		}
	}
}

// While a rule cannot be asked about, a call without an answer was not charged either: what
// is admitted is owed, and an entry that cannot be paid in time is not given up.
func TestTimeoutsOfARuleThatCannotBeAskedAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newPicky(errWrongType)
		g := newNode(inner, Options{Deadline: patient})
		defer g.Close()
		l := limit("login", 40, tidegate.FailLocal)
		for i := range 40 {
			err := errWrongType
			if i%2 == 1 {
				err = context.DeadlineExceeded
			}
			inner.err.Store(&err)
			if d, err := g.Take(t.Context(), []tidegate.Check{{Key: "bad", Limit: l, Cost: 1}}, 1); err != nil || !d.OK {
				t.Fatalf("request %d: %+v, %v", i+1, d, err)
			}
			time.Sleep(300 * time.Millisecond)
		}
		inner.err.Store(new(error))
		time.Sleep(time.Second)
		if d, err := inner.Store.Take(t.Context(), []tidegate.Check{{Key: "bad", Limit: l}}, 1); err != nil || d.Remaining != 0 || g.Health().Lost != 0 {
			t.Errorf("%d left, %v, and %d lost; want none of all that was admitted", d.Remaining, err, g.Health().Lost)
		}
	})
}
