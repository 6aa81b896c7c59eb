package main

import (
	"testing"
	"time"
)

// A replay finds what is too much, and only that.
func TestReplay(t *testing.T) {
	const emission = time.Second / events
	f := func(name string, n int, at func(i int) time.Duration, outage span, want int64) {
		t.Helper()
		var all []outcome
		start := time.Unix(1_800_000_000, 0)
		for i := range n {
			all = append(all, outcome{at: start.Add(at(i)).UnixNano(), ok: true})
		}
		all = append(all, outcome{at: start.UnixNano()}) // a refusal
		if outage.to != outage.from {
			outage = span{start.Add(time.Duration(outage.from.UnixNano())), start.Add(time.Duration(outage.to.UnixNano()))}
		}
		if v := replay(all, outage); v.nonconforming != want || v.admitted != int64(n) || v.asked != int64(n)+1 {
			t.Errorf("%s: %+v, want %d", name, v, want)
		}
	}
	at := func(d time.Duration) time.Time { return time.Unix(0, int64(d)) }
	f("a burst", events, func(int) time.Duration { return 0 }, span{}, 0)
	f("one more", events+1, func(int) time.Duration { return 0 }, span{}, 1)
	f("a burst and its rate", 3*events, func(i int) time.Duration { return max(0, emission*time.Duration(i-events+1)) }, span{}, 0)
	f("a thousandth too fast", 3*events, func(i int) time.Duration { return max(0, emission*time.Duration(i-events+1)*999/1000) }, span{}, 2*events/1000)
	f("in an outage", events+100, func(i int) time.Duration { return time.Duration(i) }, span{at(0), at(time.Millisecond)}, 0)
}

// The last line adds up what matters: rounds in which nothing keeps leases from being used.
func TestSummary(t *testing.T) {
	round := func(leased, kill bool, asked, calls, bad int64, use float64) result {
		return result{round: round{leased: leased, kill: kill}, replayed: replayed{asked: asked, nonconforming: bad, use: use}, calls: calls}
	}
	s := summarize([]result{
		round(false, false, 1000, 500, 7, 1), round(true, false, 1000, 2, 0, 0.99),
		round(true, false, 1000, 3, 0, 0.98), round(true, true, 1000, 900, 1, 0.5),
	})
	if want := (summary{fewer: 200, use: 0.98, nonconforming: 1}); s != want {
		t.Errorf("%+v, want %+v", s, want)
	}
	for _, r := range []eventualResult{
		{eventualRound: eventualRound{instances: 3, load: 3}, over: 60},
		{eventualRound: eventualRound{instances: 3, load: 3}, over: 102},
		{eventualRound: eventualRound{instances: 8, load: 3}, over: 170},
		{eventualRound: eventualRound{instances: 8, load: 0.9}},
	} {
		s.add(r)
	}
	if got := s.String(); got != "bench-fleet: leased calls 1/200 use 98.0% nonconforming 1 eventual +5.1%" {
		t.Error(got)
	}
	if m := s.missed(); len(m) != 1 {
		t.Error(m)
	}
	if m := (summary{fewer: 99, use: 0.96}).missed(); len(m) != 2 {
		t.Error(m)
	}
	s = summary{fewer: 100, use: 1}
	s.add(eventualResult{eventualRound: eventualRound{instances: 3, load: 3}, over: 141})
	s.add(eventualResult{eventualRound: eventualRound{instances: 8, load: 3}, over: 181})
	s.add(eventualResult{eventualRound: eventualRound{instances: 8, load: 0.9}, refused: 1})
	s.add(eventualResult{eventualRound: eventualRound{instances: 3, load: 3, lossy: true}, admitted: 9, counted: 10})
	if m := s.missed(); len(m) != 4 {
		t.Error(m)
	}
}
