package tidegate_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/testdep"
	"tidegate.dev/tidegate/store/memory"
	"tidegate.dev/tidegate/store/redis"
)

// wrongPasswords is a limit of wrong passwords with a block of 15 minutes, and the peek of
// it that belongs into every vector.
func wrongPasswords(spec tidegate.Spec) vector {
	spec.Name, spec.Scope = "login", "ip"
	b := tidegate.MustLimit(tidegate.Spec{Name: "login", Scope: "ip#block", Events: 1, Period: 15 * time.Minute, Terms: &tidegate.Terms{Role: tidegate.Blocks}})
	spec.Terms = &tidegate.Terms{Block: b, Counts: []tidegate.StatusRange{{From: 401, To: 401}}}
	return vector{{Key: "a", Limit: tidegate.MustLimit(spec), Cost: 1}, {Key: "a", Limit: b}}
}

const (
	wrong, right, left = 401, 200, 0 // what becomes of a try: a client that left has no status
	blockTime          = 15 * time.Minute
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
		checks := wrongPasswords(tidegate.Spec{Events: 100, Period: time.Hour})
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
		enter(false, time.Hour+time.Minute) // 45 are settled: too many for 60 more
	})
}

// Who hangs up, or is not followed to the end, has used what was charged.
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

// tries is a key as it should be: failures that are known, tries in flight, and
// whether it is blocked.
type tries struct {
	capacity, failed, flying int
	blocked                  bool
}

func (m *tries) enter() (ok bool) {
	switch {
	case m.blocked:
	case m.failed+m.flying < m.capacity:
		m.flying++
		return true
	case m.failed >= m.capacity:
		m.blocked = true
	}
	return false
}

func (m *tries) end(status int) {
	m.flying--
	if status != right {
		m.failed++
	}
}

// play lets steps happen to a key that several gates decide about, and to the model:
// 0 enters, others end a try that is in flight, the oldest or the latest, in one of
// three ways. A step that makes no sense is none.
func play(t *testing.T, gates []*tidegate.Gate, capacity int, steps []int) error {
	m := tries{capacity: capacity}
	var flying []*tidegate.Visit
	for i, step := range steps {
		if step == 0 {
			d, v := gates[i%len(gates)].Enter(t.Context(), &tidegate.Request{})
			ok := m.enter()
			switch {
			case d.OK != ok:
				return fmt.Errorf("%v: step %d admitted %t: %+v, want %+v", steps, i+1, d.OK, d, m)
			case ok:
				flying = append(flying, v)
			case m.blocked != (d.RetryAfter > time.Second):
				return fmt.Errorf("%v: step %d is told to come back in %s: want %+v", steps, i+1, d.RetryAfter, m)
			}
			continue
		}
		if len(flying) == 0 {
			continue
		}
		status := []int{wrong, right, left}[(step-1)%3]
		which := 0
		if step > 3 {
			which = len(flying) - 1
		}
		if err := flying[which].End(tidegate.Outcome{Status: status}); err != nil {
			return err
		}
		flying = append(flying[:which], flying[which+1:]...)
		m.end(status)
	}
	return nil
}

// blockable are the ways to count failures, with nothing coming back during a test.
// (A leaky bucket keeps the place of who left it: it is about pace, not about tries.)
func blockable(capacity int64) map[string]tidegate.Spec {
	const ages = 360 * 24 * time.Hour
	return map[string]tidegate.Spec{
		"token_bucket":   {Algorithm: tidegate.TokenBucket, Events: capacity, Period: 24 * time.Hour},
		"fixed_window":   {Algorithm: tidegate.FixedWindow, Events: capacity, Period: ages},
		"sliding_log":    {Algorithm: tidegate.SlidingLog, Events: capacity, Period: 24 * time.Hour},
		"sliding_window": {Algorithm: tidegate.SlidingWindow, Events: capacity, Period: ages},
		"sub_windows":    {Algorithm: tidegate.SubWindows, Events: capacity, Period: ages},
		"quota":          {Algorithm: tidegate.Quota, Events: capacity, Calendar: tidegate.Year},
	}
}

// Every order of up to six steps for two tries, on two nodes: a key is blocked when
// it is refused and its failures alone are as many as the limit, not before.
func TestOnlyWhatIsSettledBlocks(t *testing.T) {
	f := func(name string, spec tidegate.Spec, capacity, length int) {
		t.Run(fmt.Sprint(name, " ", capacity), func(t *testing.T) {
			steps, fit := make([]int, length), wrongPasswords(spec)
			for more := true; more; {
				store := memory.New()
				gates := []*tidegate.Gate{tidegate.NewGate(fit, store), tidegate.NewGate(fit, store)}
				if err := play(t, gates, capacity, steps); err != nil {
					t.Fatal(err)
				}
				more = false
				for i := range steps {
					if steps[i]++; steps[i] < 7 {
						more = true
						break
					}
					steps[i] = 0
				}
			}
		})
	}
	for name, spec := range blockable(2) {
		length := 5
		if name == "sliding_log" && !raceEnabled {
			length = 6
		}
		f(name, spec, 2, length)
	}
}

// randomSteps has entering more often than each way to end.
func randomSteps(r *rand.Rand, n int) []int {
	steps := make([]int, n)
	for i := range steps {
		steps[i] = max(0, r.IntN(14)-7)
	}
	return steps
}

func TestOnlyWhatIsSettledBlocksInLongHistories(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 12))
	for name, spec := range blockable(5) {
		fit := wrongPasswords(spec)
		for range 300 {
			store := memory.New()
			gates := []*tidegate.Gate{tidegate.NewGate(fit, store), tidegate.NewGate(fit, store), tidegate.NewGate(fit, store)}
			if err := play(t, gates, 5, randomSteps(r, 60)); err != nil {
				t.Fatal(name, err)
			}
		}
	}
}

// The same on nodes that share a Redis: what is in flight on one holds places on the
// others, and blocks nobody there.
func TestOnlyWhatIsSettledBlocksInAFleet(t *testing.T) {
	server := testdep.Redis(t)
	r := rand.New(rand.NewPCG(2, 12))
	for name, spec := range blockable(3) {
		fit := wrongPasswords(spec)
		for i := range 20 {
			var gates []*tidegate.Gate
			for range 3 {
				node, err := redis.Open(redis.Config{Addrs: []string{server.Socket}, Prefix: fmt.Sprint(name, i)})
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = node.Close() }()
				gates = append(gates, tidegate.NewGate(fit, node))
			}
			if err := play(t, gates, 3, randomSteps(r, 30)); err != nil {
				t.Fatal(name, err)
			}
		}
	}
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
