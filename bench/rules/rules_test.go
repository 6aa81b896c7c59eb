package main

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Scripts read the last line: its form is a promise.
func TestSummaryLine(t *testing.T) {
	s := summary{few: 310.4, many: 389.6, ratio: 1.26, allocs: 0.0001}
	s.some, s.lots = loaded{took: 512 * time.Millisecond, perRule: 1490}, loaded{took: 3900 * time.Millisecond, perRule: 1450}
	s.reload = reloaded{worst: 10 * time.Millisecond, cpu: 210 * time.Microsecond, oversleep: 9500 * time.Microsecond}
	const want = "bench-rules: 10 rules 310ns 1000 rules 390ns allocs 0 load 10000 0.51s 100000 3.90s 1450B/rule reload worst 10.00ms cpu 0.21ms oversleep 9.50ms"
	if got := s.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if m := s.missed(); len(m) != 0 {
		t.Errorf("missed: %q", m)
	}
}

func TestMissedNamesTheBar(t *testing.T) {
	s := summary{few: 300, many: 1200, ratio: 4, allocs: 1}
	s.some, s.lots = loaded{took: 2 * time.Second}, loaded{took: 5 * time.Second, perRule: 3000}
	s.reload = reloaded{worst: 3 * time.Millisecond, decisions: 7}
	got := strings.Join(s.missed(), "\n")
	want := regexp.MustCompile(`^a thousand rules take 4\.00x.*1\.5x\na thousand rules take 1200ns.*1000ns\nallocs is 1\.00.*\n10,000 rules load in 2\.00s.*\n100,000 rules load in 5\.00s.*\na rule keeps 3000 bytes.*\nthe worst of 7 decisions during reloads takes 3\.00ms.*1ms and the 0\.00ms that the probe overslept$`)
	if !want.MatchString(got) {
		t.Errorf("missed:\n%s", got)
	}
}

func TestRun(t *testing.T) {
	var out bytes.Buffer
	if err := run(context.Background(), []string{"-rounds", "1", "-some", "200", "-lots", "2000"}, &out); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^bench-rules: 10 rules \d+ns 1000 rules \d+ns allocs 0 load 10000 [\d.]+s 100000 [\d.]+s \d+B/rule reload worst [\d.]+ms cpu [\d.]+ms oversleep [\d.]+ms\n\z`).Match(out.Bytes()) {
		t.Errorf("printed:\n%s", &out)
	}
}
