package main

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/bench/internal/rig"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// Scripts read the last line: its form is a promise.
func TestSummaryLine(t *testing.T) {
	s := summary{redisRate: 2.21, throttled: 3.64, hot: 12.44, hotCPU: 31.2, attack: 6.5, twoLimits: 1.384, threeSubjects: 2.1, cluster: 1.08}
	const want = "bench-redis: redis_rate 2.2x throttled 3.6x hot 12.4x hot-cpu 1/31 attack 6.5x two-limits 1.38x three-subjects 2.10x cluster 1.1x"
	var out strings.Builder
	if err := rig.Conclude(&out, true, s, s.missed()); err != nil || out.String() != want+"\n" {
		t.Errorf("got  %s, %v\nwant %s", &out, err, want)
	}
}

func TestMissedNamesTheBar(t *testing.T) {
	f := func(s summary, want string) {
		t.Helper()
		var out strings.Builder
		err := rig.Conclude(&out, true, s, s.missed())
		if (err != nil) != (want != "") || !regexp.MustCompile(`^`+want+`bench-redis: .*\n$`).MatchString(out.String()) {
			t.Errorf("%+v: %v\n%s", s, err, &out)
		}
		if rig.Conclude(&out, false, s, s.missed()) != nil {
			t.Errorf("%+v: fails unchecked", s)
		}
	}
	f(summary{2, 3.3, 12, 20, 6, 1.5, 2.2, 1.15}, "")
	f(summary{1.99, 3.3, 12, 20, 6, 1.5, 2.2, 1.15}, `missed: redis_rate is 1\.99x, the bar is at least 2x\n`)
	f(summary{2, 3.29, 12, 20, 6, 1.5, 2.2, 1.15}, `missed: throttled is 3\.29x, the bar is at least 3\.3x\n`)
	f(summary{2, 3.3, 8.9, 20, 6, 1.5, 2.2, 1.15}, `missed: hot is 8\.9x, the bar is at least 9x\n`)
	f(summary{2, 3.3, 12, 19.9, 6, 1.5, 2.2, 1.15}, `missed: hot-cpu is 1/19\.9, the bar is at most 1/20\n`)
	f(summary{2, 3.3, 12, 20, 5.9, 1.5, 2.2, 1.15}, `missed: attack is 5\.9x, the bar is at least 6x\n`)
	f(summary{2, 3.3, 12, 20, 6, 1.51, 2.2, 1.15}, `missed: two-limits is 1\.51x, the bar is at most 1\.5x\n`)
	f(summary{2, 3.3, 12, 20, 6, 1.5, 2.21, 1.15}, `missed: three-subjects is 2\.21x, the bar is at most 2\.2x\n`)
	f(summary{2, 3.3, 12, 20, 6, 1.5, 2.2, 1.16}, `missed: cluster is 1\.16x, the bar is at most 1\.15x\n`)
}

// heats makes an entrant that did so many decisions in each second of its rounds.
func heats(decisions ...int64) *entrant {
	e := &entrant{contestant: contestant{name: "one"}}
	for _, n := range decisions {
		e.heats = append(e.heats, tally{decisions: n, took: time.Second, account: account{cpu: time.Millisecond}})
	}
	return e
}

// Ratios are those of the median round, and to rivals of the worst number of callers.
func TestSummary(t *testing.T) {
	f := figures{
		keys: []entrants{
			{heats(40, 60, 90), heats(10, 20, 10), heats(10, 10, 10)},
			{heats(40, 60, 90), heats(20, 20, 20), heats(10, 10, 5)},
		},
		hot:     entrants{heats(400, 400, 400), heats(20, 20, 20)},
		attack:  entrants{heats(70, 70, 70), heats(10, 10, 10)},
		multi:   entrants{heats(40, 40, 40), heats(20, 20, 20), heats(10, 10, 20)},
		cluster: entrants{heats(10, 10, 10), heats(20, 20, 20)},
	}
	if got, want := f.summary(), (summary{redisRate: 3, throttled: 6, hot: 20, hotCPU: 20, attack: 7, twoLimits: 2, threeSubjects: 4, cluster: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestWrong(t *testing.T) {
	output := func(f figures, want string) {
		t.Helper()
		err := f.wrong()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	total := func(t tally, span time.Duration) *entrant {
		return &entrant{contestant: contestant{name: "one"}, total: t, span: span}
	}
	output(figures{keys: []entrants{{total(tally{decisions: 9, admitted: 9}, 0)}}}, "")
	output(figures{keys: []entrants{{total(tally{decisions: 9, admitted: 8}, 0)}}}, "refused 1 of 9")
	output(figures{hot: entrants{total(tally{decisions: 9, admitted: 9, failed: 2, why: errors.New("late")}, 0)}}, "no answer for 2 of 11: late")
	most := int64(attackers * (scarce.burst + scarce.events))
	output(figures{attack: entrants{total(tally{decisions: 1 << 30, admitted: most}, scarce.period)}}, "")
	output(figures{attack: entrants{total(tally{decisions: 1 << 30, admitted: most + 1}, scarce.period)}}, "of the attackers")
	most = int64(steadyUsers * (steady.burst + steady.events))
	output(figures{truth: []truthful{{"one", tally{admitted: most, took: steady.period}}}}, "")
	output(figures{truth: []truthful{{"one", tally{admitted: most + 1, took: steady.period}}}}, "of what the limit allows")
	output(figures{truth: []truthful{{"one", tally{decisions: most, admitted: most / 2, took: steady.period}}}}, "") // it was not asked for more
	output(figures{truth: []truthful{{"one", tally{decisions: 2 * most, admitted: most / 2, took: steady.period}}}}, "of what the limit allows")
}

func TestParseAccount(t *testing.T) {
	const info = "# CPU\r\nused_cpu_sys:1.250000\r\nused_cpu_user:2.500000\r\nused_cpu_sys_children:9.0\r\n# Commandstats\r\n" +
		"cmdstat_evalsha:calls=10,usec=200,usec_per_call=20.00\r\ncmdstat_eval:calls=1,usec=50,usec_per_call=50.00\r\ncmdstat_get:calls=7,usec=7,usec_per_call=1.00\r\n"
	got, err := parseAccount(info)
	if want := (account{3750 * time.Millisecond, 11, 250 * time.Microsecond}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if _, err := parseAccount("used_cpu_sys:1.0\r\n"); err == nil {
		t.Error("half of the CPU time passes for all of it")
	}
}

// A caller's failures are no decisions, and only keys that are counted are admitted.
func TestDrive(t *testing.T) {
	lim := limiter{caller: func() decide {
		n := 0
		return func(_ context.Context, key string) (bool, error) {
			if n++; n%4 == 0 {
				return true, errors.New("late")
			}
			return key == "a", nil
		}
	}}
	l := &load{
		callers: 3,
		drawn:   []string{"a", "b"},
		count:   func(key string) bool { return key == "b" },
	}
	got := l.drive(t.Context(), lim, time.Millisecond)
	if got.admitted != 0 || got.failed > got.decisions || got.why == nil && got.failed > 0 {
		t.Errorf("got %+v", got)
	}
	l.count = nil
	for got = (tally{}); got.admitted == 0 || got.failed == 0; got = l.drive(t.Context(), lim, time.Millisecond) {
		if t.Context().Err() != nil {
			t.Fatal("nothing was admitted")
		}
	}
	if got.admitted >= got.decisions || got.rate() <= 0 {
		t.Errorf("got %+v", got)
	}
}

// The whole rig, on a real Redis, for as short as it can be.
func TestRig(t *testing.T) {
	testdep.Need(t, "redis-server")
	runtime.LockOSThread() // the servers are told to end with the thread that started them
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-rounds", "1", "-heat", "20ms"}, &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{
		`Tidegate +64 `, `redis_rate +1024 `, `throttled +256 `, `Tidegate, a call per decision +[0-9]`, `Tidegate, no deny cache +[0-9]`, `sliding_log +[0-9]`, `two limits of one user +[0-9]`, `user, address and everyone +[0-9]`, `Tidegate, three masters +[0-9]`,
		`\nbench-redis: redis_rate [0-9.]+x throttled [0-9.]+x hot [0-9.]+x hot-cpu 1/[0-9]+ attack [0-9.]+x two-limits [0-9.]+x three-subjects [0-9.]+x cluster [0-9.]+x\n$`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("%q is not in\n%s", want, &out)
		}
	}
	if err := run(t.Context(), []string{"-only", "nothing"}, &out); err == nil {
		t.Error("a race that does not exist was run")
	}
}
