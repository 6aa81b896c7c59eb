package rig

import (
	"errors"
	"math"
	"strings"
	"testing"
)

type line string

func (l line) String() string { return string(l) }

func TestConclude(t *testing.T) {
	f := func(check bool, missed []string, want string, wantErr error) {
		t.Helper()
		var out strings.Builder
		if err := Conclude(&out, check, line("bench: 1x"), missed); !errors.Is(err, wantErr) || out.String() != want {
			t.Errorf("check %t, missed %q: %q, %v", check, missed, &out, err)
		}
	}
	f(true, nil, "bench: 1x\n", nil)
	f(false, []string{"a", "b"}, "bench: 1x\n", nil)
	f(true, []string{"a", "b"}, "missed: a\nmissed: b\nbench: 1x\n", ErrMissed)
}

func TestMissedNamesTheBar(t *testing.T) {
	f := func(want string, b Bar) {
		t.Helper()
		if got := strings.Join(Missed(b), "\n"); got != want {
			t.Errorf("%+v: %q, want %q", b, got, want)
		}
	}
	f("", Bar{Name: "take", Got: 2, Want: 2, Unit: "x"})
	f("take is 1.96x, the bar is at least 2x", Bar{Name: "take", Got: 1.96, Want: 2, Unit: "x"})
	f("", Bar{Name: "bytes", Got: 40, Want: 40, AtMost: true})
	f("bytes is 41, the bar is at most 40", Bar{Name: "bytes", Got: 41, Want: 40, AtMost: true})
	f("take is NaNx, the bar is at least 2x", Bar{Name: "take", Got: math.NaN(), Want: 2, Unit: "x"})
}

func TestAllocs(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 0.0049: "0", 0.005: "0.01", 1: "1.00"} {
		if got := Allocs(n); got != want {
			t.Errorf("Allocs(%v) = %s, want %s", n, got, want)
		}
	}
}
