package tidegate_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// wrongPasswords is a limit of wrong passwords with a block of 15 minutes, and the peek of
// it that belongs into every vector.
func wrongPasswords(spec tidegate.Spec) vector {
	spec.Name, spec.Scope = "login", "ip"
	b := tidegate.MustLimit(tidegate.Spec{Name: "login", Scope: "ip#block", Events: 1, Period: 15 * time.Minute, Terms: &tidegate.Terms{Role: tidegate.Blocks}})
	spec.Terms = &tidegate.Terms{AtEnd: tidegate.AtEnd{Block: b, Counts: []tidegate.StatusRange{{From: 401, To: 401}}}}
	return vector{{Key: "a", Limit: tidegate.MustLimit(spec), Cost: 1}, {Key: "a", Limit: b}}
}

const (
	wrong, right = 401, 200
	blockTime    = 15 * time.Minute
	longBlock    = 72 * time.Hour
)

func TestRightPasswordsAtOnceAreNotBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := tidegate.NewGate(wrongPasswords(tidegate.Spec{Events: 5, Period: 15 * time.Minute}), memory.New())
		var tries []*tidegate.Visit
		for i := range 20 {
			d, v := gate.Enter(t.Context(), &tidegate.Request{})
			if d.OK != (i < 5) || !d.OK && (d.RetryAfter == 0 || d.RetryAfter > time.Second) {
				t.Fatalf("try %d at once: %+v, want 5 admitted and the others told to come back soon", i+1, d)
			}
			if d.OK {
				tries = append(tries, v)
			}
		}
		for _, v := range tries {
			_ = v.End(tidegate.Outcome{Status: right})
		}
		if d := gate.Decide(t.Context(), &tidegate.Request{}); !d.OK {
			t.Errorf("after five right passwords: %+v", d)
		}
	})
}

// Slots are in flight by definition: a refusal for want of one starts no block.
func TestSlotsInUseStartNoBlock(t *testing.T) {
	store := memory.New()
	checks := wrongPasswords(tidegate.Spec{Events: 2, Period: time.Minute, Algorithm: tidegate.Concurrency})
	gate := tidegate.NewGate(checks, store)
	var held []*tidegate.Visit
	for i := range 6 {
		d, v := gate.Enter(t.Context(), &tidegate.Request{})
		if d.OK != (i < 2) || d.RetryAfter > time.Minute {
			t.Errorf("request %d: %+v", i+1, d)
		}
		held = append(held, v)
	}
	for _, v := range held {
		_ = v.End(tidegate.Outcome{Status: wrong})
	}
	if d := gate.Decide(t.Context(), &tidegate.Request{}); !d.OK {
		t.Errorf("with all slots free: %+v", d)
	}
}

// An estimate in flight is more than what will have been used.
func TestEstimatesInFlightStartNoBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checks := wrongPasswords(tidegate.Spec{Events: 100, Period: 2 * time.Hour, Algorithm: tidegate.FixedWindow})
		checks[0].Cost, checks[0].Estimate = 60, true
		gate := tidegate.NewGate(checks, memory.New())
		enter := func(ok bool, retry time.Duration) *tidegate.Visit {
			t.Helper()
			d, v := gate.Enter(t.Context(), &tidegate.Request{})
			if d.OK != ok || d.RetryAfter != retry {
				t.Errorf("%+v, want %t, retry %s", d, ok, retry)
			}
			return v
		}
		used := func(cost int64) tidegate.Outcome {
			return tidegate.Outcome{Status: wrong, Cost: cost, CostKnown: true}
		}
		first := enter(true, 0)
		enter(false, time.Second) // 60 are in the way, and nobody has used anything
		_ = first.End(used(30))
		second := enter(true, 0)
		enter(false, time.Second) // 30 are settled, and would leave room
		_ = second.End(used(15))
		enter(false, 2*time.Hour) // 45 are settled: too many for 60 more
	})
}

// estimatedTokens is a rule that counts by status, a limit of 40 on estimates with a block, which is
// recorded apart from it, and the peek of the block.
func estimatedTokens(algorithm tidegate.Algorithm, cost int64) vector {
	checks := wrongPasswords(tidegate.Spec{Events: 1000, Period: time.Hour})
	spec := tidegate.Spec{Name: "tokens", Algorithm: algorithm, Events: 40, Period: 24 * time.Hour}
	if algorithm == tidegate.Quota {
		spec.Period, spec.Calendar = 0, tidegate.Day
	}
	b := tidegate.MustLimit(tidegate.Spec{Name: "tokens", Scope: "block", Events: 1, Period: longBlock, Terms: &tidegate.Terms{Role: tidegate.Blocks}})
	spec.Terms = &tidegate.Terms{AtEnd: tidegate.AtEnd{Block: b}}
	return append(checks, tidegate.Check{Key: "a", Limit: tidegate.MustLimit(spec), Cost: cost, Estimate: true}, tidegate.Check{Key: "a", Limit: b})
}

// An estimate that is not in the record of a ticket is in flight like any other, until it is settled.
func TestTicketsOfEstimatesInFlightStartNoBlock(t *testing.T) {
	for _, algorithm := range returning {
		synctest.Test(t, func(t *testing.T) {
			checks := estimatedTokens(algorithm, 10)
			gate := tidegate.NewGate(checks, memory.New())
			issue := func(ok bool, retry time.Duration) *tidegate.Ticket {
				t.Helper()
				d, ticket := gate.Issue(t.Context(), &tidegate.Request{})
				if d.OK != ok || d.RetryAfter != retry {
					t.Fatalf("%s: %+v, want %t, retry %s", algorithm, d, ok, retry)
				}
				return ticket
			}
			settle := func(ticket *tidegate.Ticket, cost int64) {
				t.Helper()
				if err := gate.Settle(t.Context(), carried(t, ticket), tidegate.Outcome{Status: right, Cost: cost, CostKnown: true}); err != nil {
					t.Error(err)
				}
			}
			var given []*tidegate.Ticket
			for range 4 {
				given = append(given, issue(true, 0))
			}
			issue(false, time.Second) // nobody has used anything
			for _, ticket := range given {
				settle(ticket, 6)
			}
			last := issue(true, 0) // 24 are settled
			issue(false, time.Second)
			settle(last, 7)
			issue(false, longBlock) // 31 are: too many for 10 more
		})
	}
}

// An estimate that counts from the start is replaced by the true cost in what is settled, and only
// that: what others have used stays.
func TestSettledTicketsReplaceTheirEstimateOnly(t *testing.T) {
	for _, algorithm := range returning {
		synctest.Test(t, func(t *testing.T) {
			checks := estimatedTokens(algorithm, 10)
			store := memory.New()
			gate := tidegate.NewGate(checks, store)
			tokens := checks[2].Limit
			for used := int64(0); used <= 28; used += 4 {
				d, ticket := gate.IssueSettled(t.Context(), &tidegate.Request{})
				if !d.OK {
					t.Fatalf("%s: with %d used: %+v", algorithm, used, d)
				}
				wantLeft(t, tidegate.New(store, tokens.Settled()), "a", 40-used-10)
				if err := gate.Settle(t.Context(), carried(t, ticket), tidegate.Outcome{Status: right, Cost: 4, CostKnown: true}); err != nil {
					t.Error(err)
				}
				for _, l := range []*tidegate.Limit{tokens, tokens.Settled()} {
					wantLeft(t, tidegate.New(store, l), "a", 40-used-4)
				}
			}
			if d, _ := gate.IssueSettled(t.Context(), &tidegate.Request{}); d.OK || d.RetryAfter != longBlock {
				t.Errorf("%s: with 32 used: %+v, want it blocked", algorithm, d)
			}
		})
	}
}

// Ten wrong passwords are settled and one more is in flight, which will be sent in 6 seconds. The next
// would have to wait for longer; without the one in flight it would not, so that it is not blocked.
func TestTurnsInFlightStartNoBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checks := wrongPasswords(tidegate.Spec{Events: 10, Period: time.Minute, Algorithm: tidegate.TokenBucket})
		checks[0].MaxWait = 6 * time.Second
		gate := tidegate.NewGate(checks, memory.New())
		var last *tidegate.Visit
		for range 10 {
			_ = last.End(tidegate.Outcome{Status: wrong})
			_, last = gate.Enter(t.Context(), &tidegate.Request{})
		}
		_ = last.End(tidegate.Outcome{Status: wrong})
		d, last := gate.Enter(t.Context(), &tidegate.Request{})
		if !d.OK || d.Wait != 6*time.Second {
			t.Fatalf("%+v", d)
		}
		if d := gate.Decide(t.Context(), &tidegate.Request{}); d.OK || d.RetryAfter != time.Second {
			t.Errorf("one is in flight: %+v", d)
		}
		_ = last.End(tidegate.Outcome{Status: wrong})
		if d := gate.Decide(t.Context(), &tidegate.Request{}); d.OK || d.RetryAfter != blockTime {
			t.Errorf("all are settled: %+v", d)
		}
	})
}

// A refused request is blocked if what is settled would refuse it as well, whatever it costs, leaves
// for others and would wait.
func TestWhatSettledRefusesIsBlocked(t *testing.T) {
	algorithms := append([]tidegate.Algorithm{tidegate.LeakyBucket}, returning...)
	blocked, soon := map[tidegate.Algorithm]int{}, map[tidegate.Algorithm]int{}
	for seed := range uint64(3000) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 31))
			spec := tidegate.Spec{Events: 10, Period: time.Minute, Algorithm: algorithms[rng.IntN(len(algorithms))]}
			switch spec.Algorithm {
			case tidegate.LeakyBucket:
				spec.Burst = 9
			case tidegate.Quota:
				spec.Period, spec.Calendar = 0, tidegate.Day
			}
			checks := wrongPasswords(spec)[:1]
			c := &checks[0]
			c.Cost, c.Floor = 1+rng.Int64N(4), rng.Int64N(4)
			c.MaxWait = []time.Duration{0, 6 * time.Second, 15 * time.Second, time.Minute}[rng.IntN(4)]
			store, flying := memory.New(), rng.IntN(3)
			gate := tidegate.NewGate(checks, store)
			for range 1000 {
				d, v := gate.Enter(t.Context(), &tidegate.Request{})
				if d.OK {
					if rng.IntN(4) >= flying {
						_ = v.End(tidegate.Outcome{Status: wrong})
					}
					time.Sleep(time.Duration(rng.Int64N(int64(2 * time.Second))))
					continue
				}
				alone := *c
				alone.Limit = c.Limit.Settled()
				settled, err := store.Take(t.Context(), []tidegate.Check{alone}, 1)
				if err != nil || settled.OK == (d.RetryAfter > time.Second) {
					t.Fatalf("seed %d, %+v: %+v; what is settled says %+v, %v", seed, *c, d, settled, err)
				}
				if settled.OK {
					soon[spec.Algorithm]++
				} else {
					blocked[spec.Algorithm]++
				}
				return
			}
			t.Fatalf("seed %d, %+v: never refused", seed, *c)
		})
	}
	for _, a := range algorithms {
		if blocked[a] == 0 || soon[a] == 0 {
			t.Errorf("%s: %d were blocked and %d were not: the requests do not test it", a, blocked[a], soon[a])
		}
	}
}

// A client that hangs up, or is not followed to the end, has used what was charged.
func TestUnknownOutcomesBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, decide := range []bool{true, false} {
			gate := tidegate.NewGate(wrongPasswords(tidegate.Spec{Events: 2, Period: time.Hour}), memory.New())
			for i := range 3 {
				var d tidegate.Decision
				if decide {
					d = gate.Decide(t.Context(), &tidegate.Request{})
				} else {
					var v *tidegate.Visit
					d, v = gate.Enter(t.Context(), &tidegate.Request{})
					_ = v.End(tidegate.Outcome{})
				}
				if d.OK != (i < 2) || !d.OK && d.RetryAfter != time.Hour {
					t.Errorf("request %d: %+v", i+1, d)
				}
			}
			if d := gate.Decide(t.Context(), &tidegate.Request{}); d.OK || d.Limit.Terms.Role == tidegate.Decides && d.RetryAfter != time.Hour {
				t.Errorf("%+v", d)
			}
		}
	})
}

// A store that cannot say what is settled leaves the refusal as it was.
func TestNoBlockWithoutKnowingWhatIsSettled(t *testing.T) {
	store := &settledFails{Store: memory.New()}
	gate := tidegate.NewGate(wrongPasswords(tidegate.Spec{Events: 1, Period: time.Minute}), store)
	gate.Decide(t.Context(), &tidegate.Request{})
	store.failing = true
	if d := gate.Decide(t.Context(), &tidegate.Request{}); d.OK || d.Err != nil || d.RetryAfter > time.Minute {
		t.Errorf("%+v", d)
	}
	store.failing = false
	if d := gate.Decide(t.Context(), &tidegate.Request{}); d.OK || d.RetryAfter != blockTime {
		t.Errorf("%+v", d)
	}
}

type settledFails struct {
	*memory.Store
	failing bool
}

func (s *settledFails) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	if s.failing && len(checks) == 1 {
		return tidegate.Decision{}, errDown
	}
	return s.Store.Take(ctx, checks, n)
}
