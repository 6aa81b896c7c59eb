package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// runModel sends the same random calls to the store and to the reference and
// compares every answer. A failure prints the seed and the last steps. With
// TIDEGATE_LONG=1 it runs twenty times as many seeds.
func runModel(t *testing.T, a scope, brief bool, open func(t *testing.T, now func() time.Time) tidegate.Store) {
	seeds := lessIf(brief, uint64(8), 2)
	if long() {
		seeds *= 20
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			c := newClock()
			m := model{
				subject: subject{T: t, store: open(t, c.now), clock: c, asked: a},
				rand:    rand.New(rand.NewPCG(seed, 7)),
				want:    newReference(c.now),
				tiers:   a.tiers(modelTiers()),
			}
			for range 1500 {
				m.step()
			}
		})
	}
}

// model is a run of random calls to the store under test and to the reference.
type model struct {
	subject
	rand    *rand.Rand
	want    *reference
	tiers   [][]*tidegate.Limit // each a list of limits that share a counter
	taken   []grant             // not adjusted yet
	history []string            // the last steps, for a failure
}

// grant is what both stores granted in one call, to be adjusted later.
type grant struct {
	got, want tidegate.Receipt
	checks    []tidegate.Check
	wait      time.Duration // until its turn
}

// modelTiers returns lists of limits that share a counter and differ in numbers, as the
// plans of a customer do: one list per algorithm. Bucket rates are chosen so that an event
// takes whole ticks; the reference has no ticks, and is then exact to the nanosecond. A
// bucket has one limit, unless it keeps raw time, because a store may drain at the rate of
// either between calls under different ones. One list has a log that counts what is refused. The limits of
// the last list differ in resolution.
func modelTiers() (tiers [][]*tidegate.Limit) {
	for _, k := range kinds {
		var tier []*tidegate.Limit
		for _, n := range []int64{4, 10, 6} {
			l := k.brisk("tier", n)
			tier = append(tier, l)
			if l.Algorithm == tidegate.TokenBucket || l.Algorithm == tidegate.LeakyBucket {
				break
			}
		}
		tiers = append(tiers, tier)
	}
	var raw []*tidegate.Limit // of which any may follow any
	for _, spec := range []tidegate.Spec{
		{Events: 10, Burst: 4, Period: minute},
		{Events: 4, Burst: 10, Period: minute},
		{Events: 5, Burst: 7, Period: time.Second},
	} {
		spec.Name, spec.Algorithm, spec.RawTime = "raw", tidegate.TokenBucket, true
		raw = append(raw, tidegate.MustLimit(spec))
	}
	rejected := tidegate.MustLimit(tidegate.Spec{Name: "rejected", Events: 6, Period: minute, Algorithm: tidegate.SlidingLog, CountRejected: true})
	tiers = append(tiers, raw, []*tidegate.Limit{rejected})
	var resolutions []*tidegate.Limit
	for _, spec := range []tidegate.Spec{
		{Events: 6, Algorithm: tidegate.SubWindows, Parts: 6},
		{Events: 8, Algorithm: tidegate.SlidingLog},
		{Events: 5, Algorithm: tidegate.SubWindows, Parts: 7, Ceiling: true},
	} {
		spec.Name, spec.Period = resolution, minute
		resolutions = append(resolutions, tidegate.MustLimit(spec))
	}
	return append(tiers, resolutions)
}

// resolution is the name of the limits that differ in it.
const resolution = "resolution"

// tiers leaves out what is not asked.
func (a scope) tiers(all [][]*tidegate.Limit) (some [][]*tidegate.Limit) {
	for _, tier := range all {
		var parts []string
		for _, l := range tier {
			parts = append(parts, partsOf([]tidegate.Check{{Limit: l}}, 1)...)
		}
		switch {
		case !a.hasAll(parts) || tier[0].Name == resolution && !a.has("changes"):
		case !a.has("changes"):
			some = append(some, tier[:1])
		default:
			some = append(some, tier)
		}
	}
	return some
}

// trim takes from a random check what is not asked.
func (a scope) trim(c *tidegate.Check) {
	if !a.has("advisory") {
		c.Advisory, c.Over = false, false
	}
	if !a.has("floors") {
		c.Floor = 0
	}
	if !a.has("waiting") && c.Limit.Algorithm == tidegate.TokenBucket {
		c.MaxWait = 0
	}
}

// step advances the clock, adjusts an earlier grant or takes, at random.
func (m *model) step() {
	m.Helper()
	switch m.rand.IntN(10) {
	case 0, 1, 2: // time advances by anything up to several periods
		limit := int64(1) << (10 + m.rand.IntN(28))
		m.clock.add(time.Duration(m.rand.Int64N(limit)) / step * step)
		m.note("at %s", m.clock.now().Format("02 15:04:05.000000"))
	case 3:
		m.adjust()
	default:
		m.take()
	}
}

// note adds a line to the history, which keeps the last 25.
func (m *model) note(format string, args ...any) {
	m.history = append(m.history, fmt.Sprintf(format, args...))
	if len(m.history) > 25 {
		m.history = m.history[1:]
	}
}

// checks returns one to three random checks of different counters, now and then one of
// them twice.
func (m *model) checks() (checks []tidegate.Check) {
	for _, i := range m.rand.Perm(len(m.tiers))[:min(len(m.tiers), 1+m.rand.IntN(3))] {
		tier := m.tiers[i]
		c := tidegate.Check{
			Key:      []string{"ann", "bob"}[m.rand.IntN(2)],
			Limit:    tier[min(len(tier)-1, max(0, m.rand.IntN(6)-3))],
			Cost:     max(0, m.rand.Int64N(6)-1),
			Advisory: m.rand.IntN(6) == 0,
		}
		if m.rand.IntN(3) == 0 {
			c.Floor = m.rand.Int64N(8)
		}
		c.Over = c.Advisory && m.rand.IntN(2) == 0 // as left behind by an earlier call
		if m.rand.IntN(3) == 0 {
			c.MaxWait = time.Duration(m.rand.IntN(90)) * time.Second
		}
		if c.Limit.CountRejected { // whether one that only advises counts what it would refuse is up to the store
			c.Advisory, c.Over = false, false
		}
		m.asked.trim(&c)
		if tier[0].Name == resolution {
			// When another check refuses, it is up to the store whether this counter
			// changes its resolution: so it is asked about alone.
			c.Advisory, c.Over = false, false
			return []tidegate.Check{c}
		}
		checks = append(checks, c)
		if !c.Advisory && !c.Limit.CountRejected && m.rand.IntN(8) == 0 {
			checks = append(checks, c)
		}
	}
	if !m.asked.has("vectors") {
		return checks[:1]
	}
	return checks
}

// take asks both stores for the same checks and compares their answers.
func (m *model) take() {
	m.Helper()
	checks, n := m.checks(), 1
	peeks := func(c tidegate.Check) bool { return c.Cost == 0 }
	if !slices.ContainsFunc(checks, peeks) {
		n += m.rand.IntN(3)
	}
	counts := func(c tidegate.Check) bool { return c.Limit.CountRejected }
	if !m.asked.has("copies") || len(checks) > 1 && slices.ContainsFunc(checks, counts) {
		n = 1 // of several copies, a store of many servers does not count those that another one refused in part
	}
	expected := slices.Clone(checks)
	got := m.takeN(n, checks...)
	want, err := m.want.Take(context.Background(), expected, n)
	if err != nil {
		m.Fatalf("the reference failed: %v", err)
	}
	m.note("Take(%s, %d) = %s", describe(checks), n, show(got))
	if !sameAnswer(got, want) || got.OK && !slices.Equal(checks, expected) {
		for _, line := range m.history {
			m.Log(line)
		}
		m.Fatalf("Take(%s, %d)\n\tgot  %s, %s\n\twant %s, %s", describe(checks), n, show(got), describe(checks), show(want), describe(expected))
	}
	if got.OK && len(m.taken) < 20 && !slices.ContainsFunc(checks, func(c tidegate.Check) bool { return c.Advisory }) {
		m.taken = append(m.taken, grant{got.Receipt, want.Receipt, checks, got.Wait})
	}
}

// sameAnswer reports whether a caller sees the same in both. Where two limits are
// equally close to refusing, a store may report either.
func sameAnswer(got, want tidegate.Decision) bool {
	if got.OK != want.OK || got.Never != want.Never || got.Granted != want.Granted ||
		got.RetryAfter != want.RetryAfter || got.Wait != want.Wait {
		return false
	}
	if got.Limit == want.Limit {
		return got.Remaining == want.Remaining && got.ResetAfter == want.ResetAfter
	}
	return got.Limit != nil && want.Limit != nil && !got.Outranks(&want) && !want.Outranks(&got)
}

// adjust settles a grant on both stores, once: it gives back one event of each check, or
// charges one more without asking whether there is room. Half of the time it does so for
// buckets alone, dated at the turn that the grant waited for.
func (m *model) adjust() {
	if len(m.taken) == 0 || !m.asked.has("returns") {
		return
	}
	i := m.rand.IntN(len(m.taken))
	r := m.taken[i]
	m.taken = slices.Delete(m.taken, i, i+1)
	checks := slices.Clone(r.checks)
	for j := range checks {
		checks[j].Cost = -min(1, checks[j].Cost)
		if m.rand.IntN(4) == 0 && checks[j].Limit.Algorithm != tidegate.Concurrency {
			checks[j].Cost = 1
		}
	}
	switch m.rand.IntN(8) {
	case 0:
		r.got, r.want = r.got.Latest(), r.want.Latest()
		checks = slices.DeleteFunc(checks, func(c tidegate.Check) bool { return c.Limit.Algorithm == tidegate.Concurrency })
	case 1, 2, 3, 4:
		r.got, r.want = after(r.got, turnAfter(r.wait)), after(r.want, turnAfter(r.wait))
		checks = slices.DeleteFunc(checks, func(c tidegate.Check) bool { return !isBucket(c.Limit) })
	}
	m.note("Adjust(%d, %s)", r.got.At, describe(checks))
	m.subject.adjust(r.got, checks...)
	if err := m.want.Adjust(context.Background(), r.want, checks); err != nil {
		m.Fatalf("the reference failed: %v", err)
	}
}
