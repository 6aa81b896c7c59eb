package process

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A part of a race is run again while other machines take the cores, and what it noted is
// forgotten; it does not wait for ever, and a failure ends it.
func TestUndisturbed(t *testing.T) {
	for name, test := range map[string]struct {
		stolen    []int64 // percent during each run
		runs, say int
	}{
		"calm":            {[]int64{0}, 1, 0},
		"a little":        {[]int64{2}, 1, 0},
		"once":            {[]int64{30, 0}, 2, 1},
		"three times":     {[]int64{3, 100, 5, 1}, 4, 3},
		"all the time":    {[]int64{40, 40, 40, 40, 40, 40, 40}, repeats + 1, repeats},
		"calm only later": {[]int64{40, 40, 40, 40, 40, 0}, repeats + 1, repeats},
	} {
		t.Run(name, func(t *testing.T) {
			var stolen, all int64
			runs, forgotten, noted := 0, 0, 0
			f := func() error {
				stolen, all = stolen+test.stolen[runs], all+100
				runs++
				noted++
				return nil
			}
			err := undisturbed(t.Context(), name, f, func() { forgotten++; noted = 0 }, func() (int64, int64) { return stolen, all }, time.Millisecond)
			if err != nil || runs != test.runs || forgotten != test.say || noted != 1 {
				t.Errorf("%d runs, %d forgotten, %d noted, %v; want %d, %d, 1", runs, forgotten, noted, err, test.runs, test.say)
			}
		})
	}
	broken := errors.New("broken")
	if err := Undisturbed(t.Context(), "x", func() error { return broken }, nil); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	stolen := int64(0)
	busy := func() (int64, int64) { stolen++; return stolen, stolen }
	if err := undisturbed(ctx, "x", func() error { return nil }, func() {}, busy, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
