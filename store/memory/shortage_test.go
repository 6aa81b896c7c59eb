package memory

import (
	"context"
	"fmt"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// stateful are all algorithms whose keys can be forgotten.
var stateful = []tidegate.Algorithm{
	tidegate.TokenBucket, tidegate.LeakyBucket, tidegate.FixedWindow, tidegate.SlidingLog,
	tidegate.SlidingWindow, tidegate.SubWindows, tidegate.Quota,
}

// everyFlood calls f for every algorithm, OnFull and a few bounds.
func everyFlood(t *testing.T, f func(t *testing.T, a tidegate.Algorithm, full tidegate.OnFull, maxBytes int64)) {
	bounds := []int64{256 << 10, 1 << 20}
	if raceEnabled { // which makes it fifty times slower, and nothing here runs at once
		bounds = []int64{96 << 10}
	}
	for _, maxBytes := range bounds {
		for _, a := range stateful {
			for _, full := range []tidegate.OnFull{tidegate.EvictLeast, tidegate.RefuseNew} {
				if (raceEnabled || maxBytes >= 1<<20) && a != tidegate.SlidingLog && a != tidegate.SubWindows {
					continue
				}
				if raceEnabled && (a == tidegate.SlidingLog) != (full == tidegate.EvictLeast) {
					continue
				}
				name := fmt.Sprintf("%s/%s/%dKiB", a, []string{"evict", "refuse"}[full], maxBytes>>10)
				t.Run(name, func(t *testing.T) { f(t, a, full, maxBytes) })
			}
		}
	}
}

func specOf(name string, a tidegate.Algorithm, n int64, period time.Duration, full tidegate.OnFull) tidegate.Spec {
	spec := tidegate.Spec{Name: name, Algorithm: a, Events: n, Period: period, OnFull: full}
	switch a {
	case tidegate.Quota:
		spec.Period, spec.Calendar = 0, tidegate.Day
	case tidegate.LeakyBucket:
		spec.Burst = n - 1
	}
	return spec
}

// pair is a bounded store and one that has room for everything, at one clock.
type pair struct {
	t            *testing.T
	bounded, all *Store
	clock        *testClock
}

func newPair(t *testing.T, maxBytes int64) *pair {
	c := &testClock{t: noon.Add(-11 * time.Hour)}
	return &pair{t: t, bounded: Open(Config{MaxBytes: maxBytes, Now: c.now}), all: Open(Config{MaxBytes: 1 << 30, Now: c.now}), clock: c}
}

// same asks both, and wants one answer.
func (p *pair) same(l *tidegate.Limit, key string) bool {
	p.t.Helper()
	checks := []tidegate.Check{{Key: key, Limit: l, Cost: 1}}
	got, err := p.bounded.Take(context.Background(), checks, 1)
	want, err2 := p.all.Take(context.Background(), checks, 1)
	if err != nil || err2 != nil || got != want {
		p.t.Fatalf("%s, key %s: %+v (%v), with room for all %+v (%v)\n%+v", l, key, got, err, want, err2, p.bounded.Stats())
	}
	return got.OK
}

func (p *pair) withinBound() {
	p.t.Helper()
	if st := p.bounded.Stats(); st.Bytes > p.bounded.budget.max {
		p.t.Fatalf("%d bytes, the bound is %d", st.Bytes, p.bounded.budget.max)
	}
}

// A flood of invented keys on one rule, of whatever algorithm, changes no answer of
// five other rules, neither for who is exhausted nor for who stays below the limit.
func TestFloodOfOneRuleChangesNoOtherAnswer(t *testing.T) {
	everyFlood(t, func(t *testing.T, a tidegate.Algorithm, full tidegate.OnFull, maxBytes int64) {
		p := newPair(t, maxBytes)
		flooded := tidegate.MustLimit(specOf("flooded", a, 5, 7*24*time.Hour, full))
		var others []*tidegate.Limit
		for i, other := range stateful {
			others = append(others, tidegate.MustLimit(specOf(fmt.Sprint("day", i), other, 5, 24*time.Hour, full)))
		}
		steady := []*tidegate.Limit{
			tidegate.MustLimit(specOf("steady log", tidegate.SlidingLog, 50, time.Minute, full)),
			tidegate.MustLimit(specOf("steady parts", tidegate.SubWindows, 100, time.Minute, full)),
		}
		blocked := int(maxBytes >> 15) // the more of them, the more memory
		for _, l := range others {
			for k := range blocked {
				for range 6 {
					p.same(l, fmt.Sprint("exhausted", k))
				}
			}
		}
		keys := int(maxBytes / 12) // six times as many as there is room for
		if full == tidegate.RefuseNew {
			keys /= 2
		}
		for k := range keys {
			p.clock.pass(200 * time.Microsecond)
			d := ask1(t, p.bounded, flooded, fmt.Sprint("invented", k))
			if !d.OK {
				t.Fatalf("invented key %d: %+v, %+v", k, d, p.bounded.Stats())
			}
			switch {
			case k%500 == 0: // ten a second, 24 clients: 25 a minute each
				for _, l := range steady {
					if !p.same(l, fmt.Sprint("steady", k/500%24)) {
						t.Fatalf("%s: a steady client was refused", l)
					}
				}
			case k%1000 == 1:
				for _, l := range others {
					if p.same(l, fmt.Sprint("exhausted", k/1000%blocked)) && l.Algorithm != tidegate.LeakyBucket {
						t.Fatalf("%s: an exhausted key was admitted", l)
					}
				}
				p.withinBound()
			}
		}
		for _, l := range append(others, steady...) {
			for k := range blocked {
				p.same(l, fmt.Sprint("exhausted", k))
			}
			if st := p.bounded.LimitStats(l); st.Forgotten+st.RefusedFull > 0 {
				t.Errorf("%s: %+v", l, st)
			}
		}
		if st := p.bounded.Stats(); st.Forgotten == 0 {
			t.Errorf("%+v: the flood was not large enough", st)
		}
	})
}

// The keys of a flood are exhausted and not to be forgotten: new ones are refused,
// and the other rules have room all the same.
func TestFloodThatIsSparedLeavesRoomForOthers(t *testing.T) {
	everyFlood(t, floodThatIsSpared)
}

// The last pages of a small store are also for rules that have none yet. Which rule comes
// last to them depends on the hashes of the keys, so there are many stores.
func TestSparedFloodOfASmallStore(t *testing.T) {
	stores := 200
	if raceEnabled {
		stores = 1
	}
	for range stores {
		floodThatIsSpared(t, tidegate.SlidingLog, tidegate.RefuseNew, 96<<10)
		floodThatIsSpared(t, tidegate.SubWindows, tidegate.RefuseNew, 96<<10)
	}
}

func floodThatIsSpared(t *testing.T, a tidegate.Algorithm, full tidegate.OnFull, maxBytes int64) {
	t.Helper()
	p := newPair(t, maxBytes)
	flooded := tidegate.MustLimit(specOf("flooded", a, 1, 7*24*time.Hour, full))
	refused := 0
	for k := range int(maxBytes / 24) {
		if d := ask1(t, p.bounded, flooded, fmt.Sprint("invented", k)); !d.OK {
			refused++
		}
	}
	if (refused > 0) != (full == tidegate.RefuseNew) {
		t.Errorf("%d refused", refused)
	}
	for _, other := range stateful {
		l := tidegate.MustLimit(specOf("other", other, 10, time.Hour, full))
		for k := range 10 {
			for range 12 {
				p.same(l, fmt.Sprint("client", k))
			}
		}
		p.withinBound()
	}
}

// After a flood has passed, and an hour of quiet, nobody is held back for it.
func TestShortageEnds(t *testing.T) {
	everyFlood(t, func(t *testing.T, a tidegate.Algorithm, full tidegate.OnFull, maxBytes int64) {
		p := newPair(t, maxBytes)
		events, quiet := int64(100), time.Hour
		if a == tidegate.Quota { // its period is a day
			events, quiet = 500, 25*time.Hour
		}
		l := tidegate.MustLimit(specOf("limit", a, events, time.Minute, full))
		keys := int(maxBytes / 20)
		for k := range keys {
			p.clock.pass(50 * time.Second / time.Duration(keys))
			ask1(t, p.bounded, l, fmt.Sprint("invented", k))
		}
		p.clock.pass(quiet)
		clients := int(maxBytes >> 15)
		for attempt := range 60 * 5 {
			for c := range clients {
				p.clock.pass(time.Second / time.Duration(clients))
				if !p.same(l, fmt.Sprint("client", c)) {
					t.Fatalf("second %d: a client at 60 %% of the limit was refused; %+v", attempt, p.bounded.Stats())
				}
			}
		}
		p.withinBound()
	})
}

// While memory is short, a client below its limit is held back for a period at
// most, and one that is over it is never let go over.
func TestHeldBackForAPeriodAtMost(t *testing.T) {
	testdep.SkipUnderRace(t)
	everyFlood(t, func(t *testing.T, a tidegate.Algorithm, full tidegate.OnFull, maxBytes int64) {
		if a == tidegate.Quota {
			return // a day would have to pass between two turns; see TestShortageEnds
		}
		s, clock := openAt(maxBytes)
		l := tidegate.MustLimit(specOf("limit", a, 100, time.Minute, full))
		exhausting := tidegate.MustLimit(specOf("flooded", a, 1, 24*time.Hour, full))
		const clients = 8
		var since [clients]time.Time // when it was first refused
		var log [clients][]time.Time // of one that asks too often
		invented := 0
		for attempt := range 60 * 4 {
			for c := range clients {
				for range maxBytes / 24 / (clients * 120) {
					ask1(t, s, exhausting, fmt.Sprint(invented))
					invented++
				}
				clock.pass(time.Second / clients)
				now := clock.now()
				d, _ := s.TakeOne(context.Background(), fmt.Sprint("steady", c), l, 1, 0)
				switch {
				case d.OK:
					since[c] = time.Time{}
				case since[c].IsZero():
					since[c] = now
				case now.Sub(since[c]) > time.Minute:
					t.Fatalf("turn %d: client %d was held back since %s; %+v", attempt, c, since[c], s.Stats())
				}
				for range 4 {
					if d, _ := s.TakeOne(context.Background(), fmt.Sprint("greedy", c), l, 1, 0); d.OK {
						log[c] = append(log[c], now)
					}
				}
			}
		}
		most := 200 // of a bucket, and around a boundary of windows
		if a == tidegate.SlidingLog {
			most = 100
		}
		for c, stamps := range log {
			from := 0
			for i, at := range stamps {
				for at.Sub(stamps[from]) >= time.Minute {
					from++
				}
				if i-from+1 > most {
					t.Fatalf("client %d: %d in a minute", c, i-from+1)
				}
			}
		}
		if st := s.LimitStats(l); st.Forgotten > 0 {
			t.Errorf("%+v: clients were forgotten", st)
		}
	})
}

// A rule that is first used after a flood of another has room for its counters: nobody
// gets more of it than its limit, nor less.
func TestRuleUsedAfterAFloodCounts(t *testing.T) {
	testdep.SkipUnderRace(t)
	everyFlood(t, func(t *testing.T, a tidegate.Algorithm, full tidegate.OnFull, maxBytes int64) {
		for _, events := range []int64{1, 5} { // keys that are exhausted by one request, and that are not
			p := newPair(t, maxBytes)
			flooded := tidegate.MustLimit(specOf("flooded", a, events, 7*24*time.Hour, full))
			for k := range int(maxBytes / 12) {
				p.clock.pass(time.Millisecond)
				ask1(t, p.bounded, flooded, fmt.Sprint("invented", k))
			}
			addresses := int(maxBytes >> 12)
			if full == tidegate.RefuseNew { // an exhausted flood leaves a sixteenth for all others
				addresses /= 4
			}
			for _, other := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.SlidingLog, tidegate.SubWindows} {
				l := tidegate.MustLimit(specOf(fmt.Sprint("login", other), other, 5, 15*time.Minute, full))
				for range 20 {
					for address := range addresses {
						p.clock.pass(time.Millisecond)
						p.same(l, fmt.Sprint("address", address))
					}
				}
				p.withinBound()
			}
		}
	})
}
