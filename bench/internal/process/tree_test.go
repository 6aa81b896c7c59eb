package process

import (
	"strings"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	const stat = "4242 (a (strange) name) S 1 4242 4242 0 -1 4194560 1000 0 0 0 150 75 9 9 20 0 1 0 100 0 0"
	if got, err := parseStat(stat); err != nil || got != 2250*time.Millisecond {
		t.Errorf("got %v, %v, want 2.25s", got, err)
	}
	for _, bad := range []string{"", "1 (x) S 1 2", strings.Replace(stat, "150", "x", 1)} {
		if got, err := parseStat(bad); err == nil {
			t.Errorf("%q: %v, want an error", bad, got)
		}
	}
}

func TestParseCores(t *testing.T) {
	const stat = "cpu  100 5 50 800 20 3 2 20 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n"
	got, err := parseCores(stat)
	if want := (cores{all: 1000, busy: 180, stolen: 20}); err != nil || got != want {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	for _, bad := range []string{"", "cpu  1 2 3", "cpu0 1 2 3 4 5 6 7 8", "cpu 1 2 3 x 5 6 7 8"} {
		if _, err := parseCores(bad); err == nil {
			t.Errorf("%q: want an error", bad)
		}
	}
}
