package main

import (
	"strings"
	"testing"
	"time"
)

// tenSeconds is a phase in which something was sent and passed.
func tenSeconds(passed map[string]int64) *phase {
	p := newPhase()
	p.began, p.ended = at(0), at(10_000)
	for path, n := range passed {
		p.paths[path] = new(tally)
		p.paths[path].sent.Store(n)
		p.paths[path].passed.Store(n)
	}
	return p
}

// misses holds what check finds to a text, "" for nothing.
func misses(t *testing.T, want string, check func(*finding)) {
	t.Helper()
	f := new(finding)
	check(f)
	if got := strings.Join(f.missed, "; "); (want == "") != (got == "") || !strings.Contains(got, want) {
		t.Errorf("missed %q, want %q", got, want)
	}
}

func TestJudgeDistance(t *testing.T) {
	f := func(passed int64, want string) {
		t.Helper()
		misses(t, want, func(f *finding) {
			f.steady(tenSeconds(map[string]int64{hotPath: passed}), hotPath, hotRate, distanceSlack)
		})
	}
	f(1000, "")
	f(1050, "")
	f(951, "")
	f(1051, "1051 admitted, want 1000")
	f(949, "949 admitted, want 1000")
}

func TestJudgeVersions(t *testing.T) {
	v := version{most: allowance{burst: 2}, window: time.Second, least: allowance{burst: 2}}
	f := func(want string, v version, sent ...int) {
		t.Helper()
		p := tenSeconds(map[string]int64{firstPath: 0, otherPath: 0})
		for _, ms := range sent {
			p.paths[firstPath].pass(span{at(ms), at(ms + 1)})
		}
		misses(t, want, func(f *finding) { v.check(f, p) })
	}
	f("", v, 0, 2000)
	f("1.0 more than 2", v, 0, 10, 2000)
	f("0 admitted, want 2 at least", v)
	v.most.rate = 1000
	f("3 admitted in some 1s, want at most 2", v, 0, 10, 20)
}

func TestJudgeSlots(t *testing.T) {
	f := func(want string, inUse, refused int64) {
		t.Helper()
		p := func() *phase { return tenSeconds(map[string]int64{slowPath: 100}) }
		before, while, after := p(), p(), p()
		while.paths[slowPath].refused.Store(50)
		after.paths[slowPath].refused.Store(refused)
		misses(t, want, func(f *finding) { f.checkSlots(time.Second, inUse, before, while, after) })
	}
	f("", 0, 1)
	f("2 of 100 refused", 0, 2)
	f("1 slots are in use", 1, 0)
}

func TestJudgeUpgrades(t *testing.T) {
	f := func(want string, used, blocked, fresh int, hot int64, recovery time.Duration) {
		t.Helper()
		misses(t, want, func(f *finding) {
			f.checkUpgrades("x", tenSeconds(map[string]int64{hotPath: hot}), used, blocked, fresh, recovery)
		})
	}
	f("", 0, 0, 10, 1110, mostRecovery)
	f("", 0, 0, 9, 890, 0)
	f("1 admitted of a quota that was used up", 1, 0, 10, 1000, 0)
	f("1 admitted of who is blocked", 0, 1, 10, 1000, 0)
	f("11 admitted of a fresh quota", 0, 0, 11, 1000, 0)
	f("8 admitted of a fresh quota", 0, 0, 8, 1000, 0)
	f("1111 admitted at 100/s", 0, 0, 10, 1111, 0)
	f("889 admitted at 100/s", 0, 0, 10, 889, 0)
	f("well again after never", 0, 0, 10, 1000, never)
}

func TestJudgePrograms(t *testing.T) {
	f := func(want string, before, one, other, after int64) {
		t.Helper()
		p := func(n, m int64) *phase { return tenSeconds(map[string]int64{"/hello/0": n, "/hello/1": m}) }
		misses(t, want, func(f *finding) {
			f.checkPrograms([]string{"/hello/0", "/hello/1"}, 0, p(before, 0), p(one, other), p(after, 0))
		})
	}
	f("", 500, 250, 250, 0)
	f("", 499, 251, 250, 0) // one copy has not seen the last request of the other
	f("a copy admitted 251", 500, 251, 250, 0)
	f("1101 admitted of 1000", 500, 250, 250, 101)
	f("899 admitted of 1000", 500, 250, 149, 0)
}

func TestJudgeMasters(t *testing.T) {
	callers := []string{"a", "b", "c"} // a is on the dead master
	f := func(want string, m masterFault, change func(*phase), printed ...changes) {
		t.Helper()
		p := newPhase()
		p.began, p.ended = at(0), at(20_000)
		for _, c := range callers {
			p.paths["/greedy/"+c], p.paths["/honest/"+c] = new(tally), new(tally)
			p.paths["/greedy/"+c].passed.Store(1000)
			p.paths["/honest/"+c].sent.Store(100)
		}
		p.inside.count("/greedy/a", "local", 500)
		change(p)
		misses(t, want, func(f *finding) { f.checkMasters(m, p, callers, 0, time.Second, printed) })
	}
	strict := masterFault{}
	f("", strict, func(*phase) {}, changes{"it is ill": 1, "it is well": 1}, changes{"it is ill": 1})
	f("1 requests of healthy masters' callers were decided locally", strict, func(p *phase) { p.inside.count("/honest/b", "local", 1) })
	f("", masterFault{down: true}, func(p *phase) { p.inside.count("/honest/b", "local", 1000) })
	f("1100 requests of healthy masters' callers", masterFault{down: true}, func(p *phase) { p.inside.count("/honest/b", "local", 1100) })
	f("3 of 200 honest requests", strict, func(p *phase) { p.paths["/honest/c"].refused.Store(3) })
	f("", strict, func(p *phase) { p.paths["/honest/a"].refused.Store(30) })
	f("2101 admitted at 50/s by each of the healthy", strict, func(p *phase) { p.paths["/greedy/c"].passed.Store(1101) })
	f("1106 admitted at 50/s by the dead", strict, func(p *phase) { p.paths["/greedy/a"].passed.Store(1106) })
	f("gateway 2 wrote 2 times: it is ill", strict, func(*phase) {}, changes{"it is ill": 1}, changes{"it is ill": 2})
}

func TestJudgeSubjects(t *testing.T) {
	f := func(want string, c subjected, passed, tenant, user, lost int64) {
		t.Helper()
		p := tenSeconds(map[string]int64{"/x": passed})
		misses(t, want, func(f *finding) { f.checkSubjects(c, p, "/x", tenant, user, lost) })
	}
	f("", subjected{}, 600, 600, 600, 0)
	f("", subjected{}, 600, 610, 605, 10)
	f("11 charged that did not pass, and only 10", subjected{}, 600, 605, 611, 10)
	f("1 passed that are not charged", subjected{}, 600, 599, 600, 10)
	f("", subjected{lossy: 3}, 600, 597, 600, 10)
	f("4 passed that are not charged", subjected{lossy: 3}, 600, 600, 596, 10)
	p := tenSeconds(map[string]int64{"/x": 0})
	for range 61 {
		p.paths["/x"].pass(span{at(0), at(1)})
	}
	misses(t, "0.9 more than 60", func(f *finding) { f.checkSubjects(subjected{}, p, "/x", 61, 61, 0) })
}
