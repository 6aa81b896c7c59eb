package main

import (
	"bufio"
	"regexp"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/bench/contestant"
)

// Scripts read the last line: its form is a promise.
func TestSummaryLine(t *testing.T) {
	s := summary{take: 2.31, allow: 1.8, windows: 1.4, slowest: 0.91, uniform: 3.1, batch8: 7.2, deny2core: 1.9, admit2core: 0.83, limits10k: 1.7, limits16: 55.4, refused3: 1.1, bytes: 28.2, allocs: 0.0001, middleware: 0.971}
	const want = "bench-engine: take 2.3x allow 1.8x windows 1.4x slowest 0.9x uniform 3.1x batch8 7.2x deny2core 1.9x admit2core 0.8x limits10k 1.7x limits16 55ns refused3 1.1x bytes/key 28 allocs 0 middleware 0.97x"
	if got := s.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if m := s.missed(); len(m) != 0 {
		t.Errorf("missed: %q", m)
	}
}

func TestMissedNamesTheBar(t *testing.T) {
	s := summary{take: 1.96, allow: 1.8, windows: 1.2, slowest: 1.7, uniform: 3.1, batch8: 7.2, deny2core: 1.9, admit2core: 0.83, limits10k: 2.2, limits16: 55, refused3: 1.1, bytes: 41, allocs: 1, middleware: 0.9}
	got := strings.Join(s.missed(), "\n")
	want := regexp.MustCompile(`^take is 1\.96x.*2x\nwindows is 1\.2x.*1\.3x\nbytes/key is 41.*40\nallocs is 1.*\nmiddleware is 0\.9x.*0\.95x$`)
	if !want.MatchString(got) {
		t.Errorf("missed:\n%s", got)
	}
}

func TestDrawGivesDifferentKeysToABatch(t *testing.T) {
	drawn := draw(makeKeys(20), 800, 1)
	if len(drawn) != 800 {
		t.Fatalf("%d keys, want 800", len(drawn))
	}
	for i := 0; i < len(drawn); i += batch {
		seen := make(map[string]bool)
		for _, key := range drawn[i : i+batch] {
			seen[key] = true
		}
		if len(seen) != batch {
			t.Fatalf("batch %d: %q", i/batch, drawn[i:i+batch])
		}
	}
}

// What is asked of one hot key never passes its quota.
func TestHotWorkFitsTheQuota(t *testing.T) {
	for _, events := range []int64{1_000_000, 10_000} {
		e := &entrant{quota: contestant.Quota{Events: events, Period: time.Second}}
		asked := make(map[string]int64)
		for _, keys := range hotWork(e, 1) {
			asked[keys[0]] += int64(len(keys))
		}
		for key, n := range asked {
			if n > events {
				t.Errorf("%s is asked for %d times, its quota is %d", key, n, events)
			}
		}
	}
}

func TestReadOK(t *testing.T) {
	f := func(answer string, ok bool) {
		t.Helper()
		r := bufio.NewReader(strings.NewReader(answer))
		if err := readOK(r); (err == nil) != ok {
			t.Errorf("%q: %v", answer, err)
		}
		if ok && r.Buffered() != 0 {
			t.Errorf("%q: %d bytes left over", answer, r.Buffered())
		}
	}
	f("HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 2\r\n\r\n{}", true)
	f("HTTP/1.1 429 Too Many Requests\r\nContent-Length: 2\r\n\r\n{}", false)
	f("HTTP/1.1 200 OK\r\n\r\n{}", false)
	f("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{", false)
}
