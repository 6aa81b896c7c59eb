package rig

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
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

// Aims that are not reached are told, and fail nothing.
func TestTellAims(t *testing.T) {
	var out strings.Builder
	TellAims(&out, Bar{Name: "nginx", Got: 0.43, Want: 0.55, Unit: "x"}, Bar{Name: "log", Got: 1, Want: 0.95, Unit: "x"}, Bar{Name: "limits", Got: 2.5, Want: 2, AtMost: true})
	if want := "not yet: nginx is 0.43x, the aim is at least 0.55x\nnot yet: limits is 2.5, the aim is at most 2\n"; out.String() != want {
		t.Errorf("got %q, want %q", &out, want)
	}
}

func TestAllocs(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 0.0049: "0", 0.005: "0.01", 1: "1.00"} {
		if got := Allocs(n); got != want {
			t.Errorf("Allocs(%v) = %s, want %s", n, got, want)
		}
	}
}

func TestFlags(t *testing.T) {
	f := func(want Flags, ok bool, args ...string) {
		t.Helper()
		got := NewFlags("bench", 5, 2*time.Second, time.Second)
		err := got.Parse(args)
		if (err == nil) != ok || got.Check != want.Check || got.Markdown != want.Markdown || got.Rounds != want.Rounds || got.Heat != want.Heat {
			t.Errorf("%q: %+v, %v", args, got, err)
		}
	}
	f(Flags{Rounds: 5, Heat: 2 * time.Second}, true)
	f(Flags{Check: true, Markdown: "f", Rounds: 1, Heat: time.Second}, true, "-check", "-markdown=f", "-rounds=1", "-heat=1s")
	f(Flags{Rounds: 0, Heat: 2 * time.Second}, false, "-rounds=0")
	f(Flags{Rounds: 5, Heat: 999 * time.Millisecond}, false, "-heat=999ms")
}
