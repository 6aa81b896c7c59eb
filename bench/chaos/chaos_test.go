package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// The test is the program that runs itself again as a node.
func TestMain(m *testing.M) {
	asNode()
	asProgram()
	os.Exit(m.Run())
}

// One row for real, shorter than usual. What a loaded machine can break is left to
// make chaos.
func TestOneRow(t *testing.T) {
	testdep.Need(t, "redis-server")
	i := slices.IndexFunc(rows, func(r row) bool { return r.name == "connection refused" })
	r := rows[i]
	r.lasts = 2 * time.Second
	o, err := r.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if o.affected != nodes || o.recovery == never {
		t.Errorf("%d nodes noticed, well again after %s", o.affected, ms(o.recovery))
	}
	for _, name := range phaseNames {
		p := o.phases()[name]
		if n := p.failures() + int64(p.inside.Errors); n > 0 || p.inside.Requests == 0 {
			t.Errorf("%s: %d of %d requests failed", name, n, p.inside.Requests)
		}
		if _, high := o.hotBounds(name); p.passed(hotPath) > high {
			t.Errorf("%s: %d admitted at 100/s, want at most %d", name, p.passed(hotPath), high)
		}
	}
	if _, high := o.hourBounds(); o.hour() > high {
		t.Errorf("%d admitted of 1000 an hour, want at most %d", o.hour(), high)
	}
	if o.during.paths[closedPath].denied.Load() == 0 {
		t.Error("nothing was denied where the fallback is to deny")
	}
	var printed strings.Builder
	o.tell(&printed)
	t.Log(printed.String())
}

// An outcome that is just within every bound, and everything that can be wrong with it.
func TestJudge(t *testing.T) {
	good := func() *outcome {
		o := &outcome{row: row{name: "x", affected: nodes}, affected: nodes, recovery: mostRecovery}
		start := time.Now()
		for i, p := range []**phase{&o.before, &o.during, &o.after} {
			*p = newPhase()
			(*p).began, (*p).ended = start, start.Add(10*time.Second)
			(*p).paths[hotPath].passed.Store(1000 + 110)
			if i > 0 {
				(*p).paths[hourPath].passed.Store(300)
			}
			(*p).inside = figures{Slowest: time.Second, Oversleep: time.Second, awake: deadline + grace}
		}
		o.before.paths[hotPath].passed.Store(1000 + 100 + 110)
		o.during.paths[closedPath].denied.Store(1)
		return o
	}
	f := func(change func(*outcome), want string) {
		t.Helper()
		o := good()
		change(o)
		o.check()
		if got := strings.Join(o.missed, "; "); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("missed %q, want %q", got, want)
		}
	}
	f(func(*outcome) {}, "")
	f(func(o *outcome) { o.during.inside.awake++ }, "during: the slowest answer")
	f(func(o *outcome) { o.after.inside.Errors = 1 }, "after: 1 requests failed")
	f(func(o *outcome) { o.before.paths[openPath].failed.Add(2) }, "before: 2 requests failed")
	f(func(o *outcome) { o.before.paths[hotPath].passed.Add(1) }, "before: 1211 admitted at 100/s, want 890 to 1210")
	f(func(o *outcome) { o.during.paths[hotPath].passed.Add(1) }, "during: 1111 admitted")
	f(func(o *outcome) { o.during.paths[hotPath].passed.Store(889) }, "during: 889 admitted")
	f(func(o *outcome) { o.during.paths[hotPath].passed.Add(333); o.over = 1.0 / 3 }, "")
	f(func(o *outcome) { o.after.paths[hotPath].passed.Add(100); o.bursts = 1 }, "")
	f(func(o *outcome) { o.after.paths[hourPath].passed.Add(1) }, "1101 admitted of 1000 an hour, want 900 to 1100")
	f(func(o *outcome) { o.after.paths[hourPath].passed.Add(1000); o.bursts = 1 }, "")
	f(func(o *outcome) { o.during.paths[openPath].sent.Add(1) }, "0 of 1 admitted where the fallback is to allow")
	f(func(o *outcome) { o.affected = 2 }, "2 nodes said")
	f(func(o *outcome) { o.during.paths[closedPath].denied.Store(0) }, "0 denied")
	f(func(o *outcome) { o.recovery++ }, "well again after")
	f(func(o *outcome) { o.recovery = never; o.heals = true }, "well again after never")
	f(func(o *outcome) { o.memory[1].Goroutines = goroutineSlack + 1 }, "11 goroutines, there were 0")
	f(func(o *outcome) { o.memory[1].Heap = heapSlack + 1 }, "in use")
	f(func(o *outcome) { o.memory[1].RSS = rssSlack + 1 }, "resident")
}

func TestProbe(t *testing.T) {
	var p probe
	for _, line := range []string{
		"tidegate serves",
		`{"path":"/hot","status":200,"duration_ms":40.5,"upstream_ms":30}`,
		`{"path":"/hot","status":429,"duration_ms":2}`,
		`{"path":"/closed","status":503,"duration_ms":3}`,
		`{"path":"/hour","status":502,"duration_ms":1}`,
	} {
		if n, err := fmt.Fprintln(&p, line); err != nil || n != len(line)+1 {
			t.Fatal(n, err)
		}
	}
	if f := p.figures; f.Requests != 4 || f.Errors != 1 || f.Slowest != 10500*time.Microsecond {
		t.Errorf("%+v", f)
	}
}

func TestPick(t *testing.T) {
	f := func(pattern string, want int) {
		t.Helper()
		if _, n, err := pick(pattern); n != want || (err != nil) != (want == 0) {
			t.Errorf("%q finds %d rows, %v", pattern, n, err)
		}
	}
	f("", 67)
	f("failover", 3)
	f("nonsense", 0)
	f("(", 0)
}
