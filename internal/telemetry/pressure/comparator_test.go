package pressure

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
)

// tell plays a script: an instant, the value then, and whether it is below. A value of "?"
// is not known.
func tell(t *testing.T, threshold float64, script string) {
	t.Helper()
	var v comparator
	for line := range strings.Lines(strings.TrimSpace(script)) {
		line, _, _ = strings.Cut(line, "#")
		var at, value, want string
		if n, err := fmt.Sscan(line, &at, &value, &want); n != 3 {
			t.Fatalf("%q: %v", line, err)
		}
		now, err := time.ParseDuration(at)
		if err != nil {
			t.Fatal(err)
		}
		var number float64
		known := value != "?"
		if known {
			if _, err := fmt.Sscan(value, &number); err != nil {
				t.Fatal(err)
			}
		}
		v = v.step(number, threshold, known, now)
		if got := map[bool]string{true: "room", false: "full"}[v.room]; got != want {
			t.Errorf("%q: %s", strings.TrimSpace(line), got)
		}
		if back := unpack(v.pack()); back != v {
			t.Errorf("%+v comes back as %+v", v, back)
		}
	}
}

func TestComparator(t *testing.T) {
	tell(t, 100, `
		5s    99   room  # the first value counts as it is
		7s    104  room  # near the bound it stays
		7.1s  105  full
		7.2s  1    full  # and for a second at least
		8.0s  1    full
		8.1s  96   full  # near the bound again
		8.2s  94   room
		8.3s  900  room  # at most once a second, in this direction, too
		9.2s  900  full
	`)
	tell(t, 100, `
		0s    100  full  # not below
		0.9s  1    full
		1s    1    room
	`)
	tell(t, 0.8, `
		0s    ?    full  # not known is not below
		0.5s  0.1  full
		1s    0.1  room
		1.1s  ?    full  # at once: nothing is known to be safe
		2s    0.1  full
		2.1s  0.1  room
	`)
}

// Trembling inside of the band never switches, beyond it at most once a second.
func TestComparatorDoesNotFlap(t *testing.T) {
	f := func(share float64, most int) {
		t.Helper()
		var v comparator
		switches := -1 // the first is none
		random := rand.New(rand.NewPCG(1, 2))
		for i := range 20_000 { // of a millisecond
			value := 100 * (1 + share*(2*random.Float64()-1))
			before := v
			if v = v.step(value, 100, true, time.Duration(i)*time.Millisecond); v != before {
				switches++
			}
		}
		if switches > most {
			t.Errorf("values within %v of the bound: switched %d times in 20 s", share, switches)
		}
		if most > 0 && switches < 2 {
			t.Errorf("values within %v of the bound: switched %d times, so the bound means nothing", share, switches)
		}
	}
	f(0.049, 0)
	f(0.5, 20)
}

func TestComparatorsAreApartAndBounded(t *testing.T) {
	var v comparators
	if !v.step(CPU, 0.8, 0.5, true, 0) || v.step(CPU, 0.4, 0.5, true, 0) || v.step(Load, 0.8, 0.9, true, 0) {
		t.Error("comparators of different bounds and signals are not apart")
	}
	if !v.step(CPU, 0.8, 0.9, true, 500*time.Millisecond) {
		t.Error("it did not stay")
	}
	for i := range 5000 {
		v.step(Load, float64(i+1), 0, true, 0)
	}
	if n := len(*v.made.Load()); n > maxComparisons {
		t.Errorf("%d comparators are kept", n)
	}
}

// All who ask at once get the same answer, and there is one comparator.
func TestComparatorsAtOnce(t *testing.T) {
	var v comparators
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 1000 {
				if !v.step(CPU, 0.8, float64(i%10)*0.07, true, time.Duration(i)*time.Millisecond) {
					t.Error("full")
					return
				}
			}
		})
	}
	wg.Wait()
	if len(*v.made.Load()) != 1 {
		t.Errorf("%d comparators", len(*v.made.Load()))
	}
}
