package tidegate_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
)

// carried is the ticket as its caller brings it back.
func carried(t *testing.T, ticket *tidegate.Ticket) *tidegate.Ticket {
	t.Helper()
	text, err := ticket.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	if trimmed := strings.Trim(string(text), "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"); trimmed != "" {
		t.Errorf("%q has %q in it", text, trimmed)
	}
	back := new(tidegate.Ticket)
	if err := back.UnmarshalText(text); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return back
}

// randomEnds is a vector of limits of which some count by status and some on an estimate.
func randomEnds(rng *rand.Rand) vector {
	algorithms := []tidegate.Algorithm{
		tidegate.LeakyBucket, tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingLog, tidegate.SlidingWindow, tidegate.SubWindows, tidegate.Concurrency,
	}
	var v vector
	for i := range 1 + rng.IntN(5) {
		spec := tidegate.Spec{Name: fmt.Sprint("l", i), Algorithm: algorithms[rng.IntN(len(algorithms))], Events: 40, Period: time.Hour}
		if spec.Algorithm == tidegate.LeakyBucket {
			spec.Burst = 40
		}
		if i == 0 { // of several buckets, a visit does not know whose turn it is
			algorithms = algorithms[2:]
		}
		terms := tidegate.Terms{Rule: "r", Handling: tidegate.Handling{Consistency: tidegate.Consistency(rng.IntN(3))}}
		c := tidegate.Check{Key: "a", Cost: 1 + rng.Int64N(2)*6, MaxWait: time.Hour}
		if spec.Algorithm == tidegate.Concurrency {
			c.Cost = 1
		} else {
			if rng.IntN(2) == 0 {
				terms.AtEnd.Counts = [][]tidegate.StatusRange{{{From: 401, To: 401}}, {{From: 500, To: 599}, {From: 401, To: 403}}}[rng.IntN(2)]
			}
			c.Estimate = rng.IntN(3) == 0
			c.Advisory = rng.IntN(6) == 0 && spec.Algorithm != tidegate.LeakyBucket
			if rng.IntN(3) == 0 {
				terms.AtEnd.Block = tidegate.MustLimit(tidegate.Spec{Name: spec.Name, Scope: "block", Events: 1, Period: 15 * time.Minute})
			}
		}
		spec.Terms = &terms
		c.Limit = tidegate.MustLimit(spec)
		v = append(v, c)
	}
	return v
}

// left are the numbers of every counter that a vector may have charged.
func left(t *testing.T, store tidegate.Store, v vector) string {
	var b strings.Builder
	for i := range v {
		for _, l := range []*tidegate.Limit{v[i].Limit, v[i].Limit.Settled()} {
			if l == nil {
				continue
			}
			d, err := store.Take(t.Context(), []tidegate.Check{{Key: "a", Limit: l}}, 1)
			fmt.Fprintf(&b, "%s %s: %d left, full in %s, %v\n", l.Name, l.Algorithm, d.Remaining, d.ResetAfter, err)
		}
	}
	return b.String()
}

// A ticket that is settled leaves every counter as a visit that ended in the same way.
func TestTicketsEndAsVisitsDo(t *testing.T) {
	testdep.SkipUnderRace(t)
	endAsVisitsDo(t, (*tidegate.Gate).Issue, func(rng *rand.Rand) time.Duration { return time.Duration(rng.IntN(20)) * time.Minute / 10 })
}

// So does one of a request that counted from the start as it was expected to end. It ends at once:
// later, Limit.Settled would count the visit from another instant.
func TestSettledTicketsEndAsVisitsDo(t *testing.T) {
	testdep.SkipUnderRace(t)
	endAsVisitsDo(t, (*tidegate.Gate).IssueSettled, func(*rand.Rand) time.Duration { return 0 })
}

type issuing func(*tidegate.Gate, context.Context, *tidegate.Request) (tidegate.Decision, *tidegate.Ticket)

func endAsVisitsDo(t *testing.T, issue issuing, takes func(*rand.Rand) time.Duration) {
	for seed := range uint64(3000) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 27))
			v := randomEnds(rng)
			visited, ticketed := memory.New(), memory.New()
			a, b := tidegate.NewGate(v, visited), tidegate.NewGate(v, ticketed)
			for range rng.IntN(4) { // of others
				a.Decide(t.Context(), &tidegate.Request{})
				b.Decide(t.Context(), &tidegate.Request{})
			}
			d, visit := a.Enter(t.Context(), &tidegate.Request{})
			e, ticket := issue(b, t.Context(), &tidegate.Request{})
			if d.OK != e.OK || (visit == nil) != (ticket == nil) {
				t.Fatalf("seed %d: entered %+v %v, issued %+v %v", seed, d, visit, e, ticket)
			}
			if ticket == nil {
				return
			}
			time.Sleep(takes(rng))
			o := tidegate.Outcome{
				Status: []int{0, 200, 401, 403, 500}[rng.IntN(5)], Cost: rng.Int64N(12), CostKnown: rng.IntN(2) == 0, Void: rng.IntN(5) == 0,
			}
			if err := errors.Join(visit.End(o), b.Settle(t.Context(), carried(t, ticket), o)); err != nil {
				t.Fatal(err)
			}
			if want, got := left(t, visited, v), left(t, ticketed, v); got != want {
				t.Fatalf("seed %d, %+v of %+v:\n%swant, as after a visit:\n%s", seed, o, v, got, want)
			}
		})
	}
}

// Of many who settle a ticket, one does; it is the first.
func TestTicketSettlesOnce(t *testing.T) {
	store := memory.New()
	c := estimated("tokens", "")
	gate := tidegate.NewGate(vector{c, {Key: "a", Cost: 1, Limit: wrongPasswords(tidegate.Spec{Events: 9, Period: time.Hour})[0].Limit}}, store)
	_, ticket := gate.Issue(t.Context(), &tidegate.Request{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	settled := 0
	for range 50 {
		wg.Go(func() {
			err := gate.Settle(t.Context(), carried(t, ticket), tidegate.Outcome{Status: right, Cost: 37, CostKnown: true})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				settled++
			} else if !errors.Is(err, tidegate.ErrSettled) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if settled != 1 {
		t.Errorf("%d of 50 settled it", settled)
	}
	wantLeft(t, tidegate.New(store, c.Limit), "a", 110-37)
	wantLeft(t, tidegate.New(store, wrongPasswords(tidegate.Spec{Events: 9, Period: time.Hour})[0].Limit), "a", 9)
}

// returning are the algorithms of which every event of a charge can be given back.
var returning = []tidegate.Algorithm{
	tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingLog, tidegate.SlidingWindow, tidegate.SubWindows, tidegate.Quota,
}

// countingOnly is a limit of so many events with an algorithm, which counts by status.
func countingOnly(name string, algorithm tidegate.Algorithm, events int64, status int, over time.Duration) *tidegate.Limit {
	spec := tidegate.Spec{Name: name, Algorithm: algorithm, Events: events, Period: time.Hour, Terms: &tidegate.Terms{
		MaxOver: over, AtEnd: tidegate.AtEnd{Counts: []tidegate.StatusRange{{From: status, To: status}}},
	}}
	if algorithm == tidegate.Quota {
		spec.Period, spec.Calendar = 0, tidegate.Day
	}
	return tidegate.MustLimit(spec)
}

// A ticket settles once, and for ReserveTTL, also if none of the checks in its record was charged:
// they were full, and only tried or gave way for a while.
func TestTicketWithAnEmptyRecordSettlesOnce(t *testing.T) {
	for _, algorithm := range returning {
		for name, full := range map[string]tidegate.Check{
			"tried":       {Key: "a", Cost: 1, Advisory: true, Limit: countingOnly("full", algorithm, 1, wrong, 0)},
			"gives way":   {Key: "a", Cost: 1, Limit: countingOnly("full", algorithm, 1, wrong, time.Hour)},
			"an estimate": {Key: "a", Cost: 1, Advisory: true, Estimate: true, Limit: countingOnly("full", algorithm, 1, wrong, 0)},
		} {
			for late, want := range map[time.Duration][]error{0: {nil, tidegate.ErrSettled}, tidegate.ReserveTTL: {tidegate.ErrSettled, tidegate.ErrSettled}} {
				synctest.Test(t, func(t *testing.T) {
					store := memory.New()
					errs := tidegate.Check{Key: "a", Cost: 1, Limit: countingOnly("errors", tidegate.TokenBucket, 40, 500, 0)}
					gate := tidegate.NewGate(vector{full, errs}, store)
					tidegate.New(store, errs.Limit).AllowN(t.Context(), "a", 10)
					gate.Decide(t.Context(), &tidegate.Request{})
					d, ticket := gate.Issue(t.Context(), &tidegate.Request{})
					if !d.OK || ticket == nil {
						t.Fatalf("%s %s: %+v %v", algorithm, name, d, ticket)
					}
					time.Sleep(late)
					before := left(t, store, vector{errs})
					for i, want := range want {
						if err := gate.Settle(t.Context(), carried(t, ticket), tidegate.Outcome{Status: right}); !errors.Is(err, want) {
							t.Errorf("%s %s, after %s: report %d: %v, want %v", algorithm, name, late, i+1, err, want)
						}
					}
					if late > 0 {
						if after := left(t, store, vector{errs}); after != before {
							t.Errorf("%s %s: too late: %swas %s", algorithm, name, after, before)
						}
						return
					}
					wantLeft(t, tidegate.New(store, errs.Limit), "a", 40-10-1)
				})
			}
		}
	}
}

// adjustFails answers everything but an Adjust.
type adjustFails struct {
	*memory.Store
	failing bool
}

func (s *adjustFails) Adjust(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	if s.failing {
		return errDown
	}
	return s.Store.Adjust(ctx, r, checks)
}

// Whoever reports again, because the first report got no further than the record, or too late, frees
// the slots, and nothing else; a report that cannot do that says so, and not that all is done.
func TestReportsThatComeAgainFreeSlots(t *testing.T) {
	f := func(name string, until func(*testing.T, *tidegate.Gate, *adjustFails, *tidegate.Ticket)) {
		synctest.Test(t, func(t *testing.T) {
			tokens := estimated("tokens", "")
			slots := tidegate.Check{Key: "a", Cost: 1, Limit: tidegate.Slots(1, time.Minute)}
			store := &adjustFails{Store: memory.New()}
			gate := tidegate.NewGate(vector{tokens, slots}, store)
			_, ticket := gate.Issue(t.Context(), &tidegate.Request{})
			until(t, gate, store, carried(t, ticket))
			before := left(t, store, vector{tokens})
			report := func(want error) {
				t.Helper()
				if err := gate.Settle(t.Context(), carried(t, ticket), tidegate.Outcome{Status: right, Cost: 1, CostKnown: true}); !errors.Is(err, want) {
					t.Errorf("%s: %v, want %v", name, err, want)
				}
			}
			store.failing = true
			report(errDown)
			wantLeft(t, tidegate.New(store, slots.Limit), "a", 0)
			store.failing = false
			report(tidegate.ErrSettled)
			wantLeft(t, tidegate.New(store, slots.Limit), "a", 1)
			if after := left(t, store, vector{tokens}); after != before {
				t.Errorf("%s: %s, want as before: %s", name, after, before)
			}
			time.Sleep(time.Millisecond)
			if d, err := store.Take(t.Context(), []tidegate.Check{slots}, 1); !d.OK || err != nil {
				t.Errorf("%s: %+v, %v", name, d, err)
			}
			report(tidegate.ErrSettled)
			wantLeft(t, tidegate.New(store, slots.Limit), "a", 0) // that of another
		})
	}
	f("again", func(t *testing.T, gate *tidegate.Gate, store *adjustFails, ticket *tidegate.Ticket) {
		store.failing = true
		if err := gate.Settle(t.Context(), ticket, tidegate.Outcome{Status: right, Cost: 1, CostKnown: true}); !errors.Is(err, errDown) {
			t.Error(err)
		}
	})
	f("too late", func(t *testing.T, gate *tidegate.Gate, _ *adjustFails, ticket *tidegate.Ticket) {
		for range tidegate.ReserveTTL / (30 * time.Second) {
			time.Sleep(30 * time.Second)
			if err := gate.Renew(t.Context(), ticket); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestTicketComesTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		c := estimated("tokens", "")
		c.Limit = tidegate.MustLimit(tidegate.Spec{Name: "tokens", Events: 110, Period: 24 * time.Hour})
		gate := tidegate.NewGate(vector{c}, store)
		_, ticket := gate.Issue(t.Context(), &tidegate.Request{})
		time.Sleep(tidegate.ReserveTTL)
		if err := gate.Settle(t.Context(), ticket, tidegate.Outcome{CostKnown: true}); !errors.Is(err, tidegate.ErrSettled) {
			t.Errorf("after its time: %v", err)
		}
		wantLeft(t, tidegate.New(store, c.Limit), "a", 50)
	})
}

func TestTicketOfAnotherProcess(t *testing.T) {
	c := estimated("tokens", "")
	here, there := tidegate.NewGate(vector{c}, memory.New()), tidegate.NewGate(vector{c}, memory.New())
	_, ticket := there.Issue(t.Context(), &tidegate.Request{})
	if err := here.Settle(t.Context(), carried(t, ticket), tidegate.Outcome{}); !errors.Is(err, tidegate.ErrElsewhere) {
		t.Errorf("settled elsewhere: %v", err)
	}
}

// Slots that are counted in the memory of another process are neither renewed nor released here,
// and whoever tries is told; alone, and beside what is settled.
func TestSlotsOfAnotherProcess(t *testing.T) {
	slots := tidegate.Check{Key: "a", Cost: 1, Limit: tidegate.MustLimit(tidegate.Spec{Name: "render", Events: 1, Period: 30 * time.Second, Algorithm: tidegate.Concurrency})}
	rate := tidegate.Check{Key: "a", Cost: 1, Limit: tidegate.MustLimit(tidegate.Spec{Name: "rate", Events: 10, Period: time.Hour})}
	for name, checks := range map[string]vector{"alone": {slots}, "beside a rate": {rate, slots}, "beside an estimate": {estimated("tokens", ""), slots}} {
		here, there := tidegate.NewGate(checks, memory.New()), tidegate.NewGate(checks, memory.New())
		_, ticket := there.Issue(t.Context(), &tidegate.Request{})
		_, own := here.Issue(t.Context(), &tidegate.Request{})
		ticket, own = carried(t, ticket), carried(t, own)
		for verb, do := range map[string]func(*tidegate.Gate, *tidegate.Ticket) error{
			"renew":   func(g *tidegate.Gate, k *tidegate.Ticket) error { return g.Renew(t.Context(), k) },
			"release": func(g *tidegate.Gate, k *tidegate.Ticket) error { return g.Release(t.Context(), k) },
			"settle":  func(g *tidegate.Gate, k *tidegate.Ticket) error { return g.Settle(t.Context(), k, tidegate.Outcome{}) },
		} {
			if err := do(here, ticket); !errors.Is(err, tidegate.ErrElsewhere) {
				t.Errorf("%s, %s elsewhere: %v", name, verb, err)
			}
		}
		for gate, theirs := range map[*tidegate.Gate]*tidegate.Ticket{here: own, there: ticket} {
			if d, _ := gate.Issue(t.Context(), &tidegate.Request{}); d.OK {
				t.Errorf("%s: the slot was given back", name)
			}
			if err := gate.Renew(t.Context(), theirs); err != nil {
				t.Errorf("%s: renew where it belongs: %v", name, err)
			}
			if err := gate.Settle(t.Context(), theirs, tidegate.Outcome{CostKnown: true}); err != nil {
				t.Errorf("%s: settle where it belongs: %v", name, err)
			}
			if d, _ := gate.Issue(t.Context(), &tidegate.Request{}); !d.OK {
				t.Errorf("%s: the slot was not given back", name)
			}
		}
	}
}

// The slots of a ticket are held while they are renewed, and not renewed by themselves.
func TestTicketHoldsSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := tidegate.MustLimit(tidegate.Spec{Name: "render", Events: 1, Period: 30 * time.Second, Algorithm: tidegate.Concurrency})
		gate := tidegate.NewGate(vector{{Key: "a", Cost: 1, Limit: slots}}, memory.New())
		admitted := func(want bool) *tidegate.Ticket {
			t.Helper()
			d, ticket := gate.Issue(t.Context(), &tidegate.Request{})
			if d.OK != want || ticket.Holds() != want {
				t.Fatalf("%+v %v, want %t", d, ticket, want)
			}
			return ticket
		}
		first := admitted(true)
		for range 5 {
			time.Sleep(20 * time.Second)
			if err := gate.Renew(t.Context(), carried(t, first)); err != nil {
				t.Fatal(err)
			}
			admitted(false)
		}
		for range 2 {
			if err := gate.Release(t.Context(), carried(t, first)); err != nil {
				t.Fatal(err)
			}
		}
		if err := gate.Renew(t.Context(), first); !errors.Is(err, tidegate.ErrLeaseLost) {
			t.Errorf("renewed after it was released: %v", err)
		}
		second := admitted(true)
		time.Sleep(31 * time.Second)
		admitted(true) // nobody renewed the second
		if err := gate.Renew(t.Context(), second); !errors.Is(err, tidegate.ErrLeaseLost) {
			t.Errorf("renewed after its lease: %v", err)
		}
	})
}

func TestNothingLeftToDo(t *testing.T) {
	gate := tidegate.NewGate(vector{{Key: "a", Cost: 1, Limit: tidegate.PerHour(1)}}, memory.New())
	for _, ok := range []bool{true, false} {
		if d, ticket := gate.Issue(t.Context(), &tidegate.Request{}); d.OK != ok || ticket != nil {
			t.Errorf("%+v %v", d, ticket)
		}
	}
	if err := errors.Join(gate.Settle(t.Context(), nil, tidegate.Outcome{}), gate.Release(t.Context(), nil)); err != nil {
		t.Error(err)
	}
}

func FuzzTicket(f *testing.F) {
	gate := tidegate.NewGate(vector{estimated("tokens", "x"), {Key: "a", Cost: 1, Limit: tidegate.MustLimit(tidegate.Spec{Name: "s", Events: 9, Period: time.Minute, Algorithm: tidegate.Concurrency})}}, memory.New())
	_, ticket := gate.Issue(f.Context(), &tidegate.Request{})
	text, _ := ticket.MarshalText()
	f.Add(text)
	f.Add([]byte("tt1_e30"))
	f.Add([]byte("tr1_"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var ticket tidegate.Ticket
		if ticket.UnmarshalText(text) != nil {
			return
		}
		gate := tidegate.NewGate(vector{}, memory.New())
		_ = gate.Renew(t.Context(), &ticket)
		_ = gate.Release(t.Context(), &ticket)
		_ = gate.Settle(t.Context(), &ticket, tidegate.Outcome{Status: 200, CostKnown: true, Cost: 1 << 62})
	})
}
