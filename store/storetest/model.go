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

// runModel sends the same random histories to the store and to the reference
// and compares every answer. A failure prints the seed and the last steps.
// There are twenty times as many of them with TIDEGATE_LONG=1.
func runModel(t *testing.T, open func(t *testing.T, now func() time.Time) tidegate.Store) {
	seeds := uint64(8)
	if long() {
		seeds *= 20
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			c := newClock()
			m := model{
				subject: subject{T: t, store: open(t, c.now), clock: c},
				rand:    rand.New(rand.NewPCG(seed, 7)),
				want:    newReference(c.now),
				tiers:   modelTiers(),
			}
			for range 1500 {
				m.step()
			}
		})
	}
}

type model struct {
	subject
	rand  *rand.Rand
	want  *reference
	tiers [][]*tidegate.Limit // by identity; the tiers of one differ in numbers
	taken []receiptOf
	said  []string
}

// receiptOf is a grant by both stores, to be returned or released later.
type receiptOf struct {
	got, want tidegate.Receipt
	checks    []tidegate.Check
	wait      time.Duration
}

// modelTiers has numbers for which an event of a bucket takes whole ticks, so
// that the reference, which knows no ticks, is right to the nanosecond. Buckets
// have one tier, unless they keep raw time: between two asks under different ones, a
// store may drain at the pace of either. The last tiers count in different resolutions.
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
	tiers = append(tiers, raw)
	var resolutions []*tidegate.Limit
	for _, spec := range []tidegate.Spec{
		{Events: 6, Algorithm: tidegate.SubWindows, Parts: 6},
		{Events: 8, Algorithm: tidegate.SlidingLog},
		{Events: 5, Algorithm: tidegate.SubWindows, Parts: 7, Ceiling: true},
	} {
		spec.Name, spec.Period = "resolution", minute
		resolutions = append(resolutions, tidegate.MustLimit(spec))
	}
	return append(tiers, resolutions)
}

func (m *model) step() {
	m.Helper()
	switch m.rand.IntN(10) {
	case 0, 1, 2: // time goes on by anything from a step to several periods
		limit := int64(1) << (10 + m.rand.IntN(28))
		m.clock.add(time.Duration(m.rand.Int64N(limit)) / step * step)
		m.note("at %s", m.clock.now().Format("02 15:04:05.000000"))
	case 3:
		m.adjust()
	default:
		m.take()
	}
}

func (m *model) note(format string, args ...any) {
	m.said = append(m.said, fmt.Sprintf(format, args...))
	if len(m.said) > 25 {
		m.said = m.said[1:]
	}
}

// checks is a random vector of limits with different counters, now and then one
// of them twice.
func (m *model) checks() (checks []tidegate.Check) {
	for _, i := range m.rand.Perm(len(m.tiers))[:1+m.rand.IntN(3)] {
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
		c.Over = c.Advisory && m.rand.IntN(2) == 0 // of an earlier call
		if m.rand.IntN(3) == 0 {
			c.MaxWait = time.Duration(m.rand.IntN(90)) * time.Second
		}
		if i == len(m.tiers)-1 {
			// Whether a counter has another resolution after others have refused is up to the
			// store: it is asked about alone.
			c.Advisory, c.Over = false, false
			return []tidegate.Check{c}
		}
		checks = append(checks, c)
		if !c.Advisory && m.rand.IntN(8) == 0 {
			checks = append(checks, c)
		}
	}
	return checks
}

func (m *model) take() {
	m.Helper()
	checks, n := m.checks(), 1
	peeks := func(c tidegate.Check) bool { return c.Cost == 0 }
	if !slices.ContainsFunc(checks, peeks) {
		n += m.rand.IntN(3)
	}
	expected := slices.Clone(checks)
	got := m.takeN(n, checks...)
	want, err := m.want.Take(context.Background(), expected, n)
	if err != nil {
		m.Fatalf("the reference failed: %v", err)
	}
	m.note("Take(%s, %d) = %s", describe(checks), n, show(got))
	if !sameAnswer(got, want) || got.OK && !slices.Equal(checks, expected) {
		for _, line := range m.said {
			m.Log(line)
		}
		m.Fatalf("Take(%s, %d)\n\tgot  %s, %s\n\twant %s, %s", describe(checks), n, show(got), describe(checks), show(want), describe(expected))
	}
	if got.OK && len(m.taken) < 20 && !slices.ContainsFunc(checks, func(c tidegate.Check) bool { return c.Advisory }) {
		m.taken = append(m.taken, receiptOf{got.Receipt, want.Receipt, checks, got.Wait})
	}
}

// sameAnswer compares what a caller sees. Where two limits are equally near to
// their end, a store may report either.
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

// adjust gives back a part of what was taken, or charges a little unasked.
func (m *model) adjust() {
	if len(m.taken) == 0 {
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
	if m.rand.IntN(2) == 0 { // by the turn that was waited for
		r.got, r.want = after(r.got, turnAfter(r.wait)), after(r.want, turnAfter(r.wait))
		checks = slices.DeleteFunc(checks, func(c tidegate.Check) bool { return !isBucket(c.Limit) })
	}
	m.note("Adjust(%d, %s)", r.got.At, describe(checks))
	m.subject.adjust(r.got, checks...)
	if err := m.want.Adjust(context.Background(), r.want, checks); err != nil {
		m.Fatalf("the reference failed: %v", err)
	}
}
