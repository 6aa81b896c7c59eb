package main

import (
	"io"
	"runtime"
	"testing"

	"tidegate.dev/tidegate/bench/internal/process"
	"tidegate.dev/tidegate/bench/internal/rig"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// Pages of a real gateway are fed again and again, those of a rule as well, and more than there may be
// are refused. What they cost is a figure of the machine, and not tested.
func TestPagesAreFed(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	g, err := startGateway(t.Context(), t.TempDir(), "", 20)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Stop()
	stop := ask(t.Context(), g.URL)
	defer stop()
	v, err := openPages(t.Context(), g.Admin, 20)
	if err != nil {
		t.Fatal(err)
	}
	testdep.Eventually(t, "the pages are fed", func() bool { return v.events.Load() >= 100 })
	if n := v.open.Load(); n != 20 {
		t.Errorf("%d pages are open", n)
	}
	if more, err := openPages(t.Context(), g.Admin, 1); err == nil {
		more.close()
		t.Error("one page more than there may be is open")
	}
	v.close()
	if n := v.open.Load(); n != 0 {
		t.Errorf("%d pages are open after all were closed", n)
	}
	if _, err := process.TreeTime(g.PID); err != nil {
		t.Error(err)
	}
}

func TestHeatsAreLongEnough(t *testing.T) {
	if err := run(t.Context(), []string{"-heat=1s"}, io.Discard); err == nil {
		t.Error("a heat that is shorter than news take is accepted")
	}
}

func TestSummary(t *testing.T) {
	s := summary{pages: 1000, shares: []float64{9, 2, 3}}
	if got := s.String(); got != "bench-pages: 1000 pages take 3.00 % of a core" {
		t.Error(got)
	}
	if missed := rig.Missed(rig.Bar{Name: "pages", Got: s.share(), Want: mostShare, AtMost: true}); len(missed) > 0 {
		t.Error(missed)
	}
}
