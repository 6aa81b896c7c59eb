package ruletest

import (
	"context"
	"slices"
	"time"

	"tidegate.dev/tidegate"
)

// clock is the virtual clock of a case.
type clock struct{ start, now time.Time }

func (c *clock) read() time.Time { return c.now }

// visit is a request that waits for its turn or is being served.
type visit struct {
	*tidegate.Visit
	ends    time.Time // by the clock of the case
	outcome tidegate.Outcome
}

// admit admits a request. If it need not wait and takes no time, it ends at once; otherwise advance
// ends it.
func (r *running) admit(v *tidegate.Visit, s *step, wait time.Duration) {
	end := tidegate.Outcome{Status: s.Status, Cost: s.Actual, CostKnown: s.Settles}
	if end.Status == 0 {
		end.Status = 200
	}
	if s.Lasts == 0 && wait == 0 {
		_ = v.End(end) // the memory store does not fail
		return
	}
	busy := visit{v, r.clock.now.Add(wait + s.Lasts), end}
	at, _ := slices.BinarySearchFunc(r.visits, busy, func(a, b visit) int {
		if a.ends.After(b.ends) {
			return 1
		}
		return -1 // of those that end at the same time, the first to come ends first
	})
	r.visits = slices.Insert(r.visits, at, busy)
}

// advance moves the clock to at, counted from the start of the case, and ends the visits that end
// by then.
func (r *running) advance(ctx context.Context, at time.Duration) {
	until := r.clock.start.Add(at)
	for len(r.visits) > 0 && !r.visits[0].ends.After(until) {
		v := r.visits[0]
		r.visits = r.visits[1:]
		r.pass(ctx, v.ends)
		_ = v.End(v.outcome)
	}
	r.pass(ctx, until)
}

// pass moves the clock, and renews the slots of visits at least as often as a server would.
func (r *running) pass(ctx context.Context, until time.Time) {
	for r.clock.now.Before(until) {
		next := until
		for _, v := range r.visits {
			if every := v.RenewEvery(); every > 0 && r.clock.now.Add(every).Before(next) {
				next = r.clock.now.Add(every)
			}
		}
		r.clock.now = next
		for _, v := range r.visits {
			_ = v.Renew(ctx)
		}
	}
}
