package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
)

// Scripts read the last line: its form is a promise.
func TestSummaryLine(t *testing.T) {
	s := summary{engine: 0.968, offenders: 12.4, rls: 0.991}
	const want = "bench-telemetry: engine 0.97x offenders 12ns rls 0.99x"
	if got := s.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if m := s.missed(); len(m) != 0 {
		t.Errorf("missed: %q", m)
	}
}

func TestMissedNamesTheBar(t *testing.T) {
	s := summary{engine: 0.9, offenders: 21, rls: 0.96}
	got := strings.Join(s.missed(), "\n")
	want := regexp.MustCompile(`^engine is 0\.9x.*0\.95x\noffenders is 21ns.*20ns\nrls is 0\.96x.*0\.97x$`)
	if !want.MatchString(got) {
		t.Errorf("missed:\n%s", got)
	}
}

// Every part decides what it should; how fast is not for a test to say.
func TestRun(t *testing.T) {
	var out bytes.Buffer
	for _, part := range []string{"engine", "offenders"} {
		if err := run(t.Context(), []string{"-rounds", "1", "-heat", "20ms", "-only", part}, &out); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"one rule, one limit", "three rules, four limits", "admitted", "refused"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing:\n%s", want, &out)
		}
	}
}

func TestServicesAnswer(t *testing.T) {
	for _, watched := range []bool{false, true} {
		server, err := newRLS(watched)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := server.ShouldRateLimit(t.Context(), question(7)); err != nil || len(out.Statuses) != 1 {
			t.Errorf("watched %t: %v, %v", watched, out, err)
		}
	}
}
