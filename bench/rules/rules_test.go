package main

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"testing"
)

// Scripts read the last line: its form is a promise.
func TestSummaryLine(t *testing.T) {
	s := summary{few: 310.4, many: 389.6, ratio: 1.26, allocs: 0.0001}
	const want = "bench-rules: 10 rules 310ns 1000 rules 390ns allocs 0"
	if got := s.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if m := s.missed(); len(m) != 0 {
		t.Errorf("missed: %q", m)
	}
}

func TestMissedNamesTheBar(t *testing.T) {
	s := summary{few: 300, many: 1200, ratio: 4, allocs: 1}
	got := strings.Join(s.missed(), "\n")
	want := regexp.MustCompile(`^a thousand rules take 4\.00x.*1\.5x\na thousand rules take 1200ns.*1000ns\nallocs is 1\.00.*$`)
	if !want.MatchString(got) {
		t.Errorf("missed:\n%s", got)
	}
}

func TestRun(t *testing.T) {
	var out bytes.Buffer
	if err := run(context.Background(), []string{"-rounds", "1"}, &out); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^bench-rules: 10 rules \d+ns 1000 rules \d+ns allocs 0\n\z`).Match(out.Bytes()) {
		t.Errorf("printed:\n%s", &out)
	}
}
