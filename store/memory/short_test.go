package memory

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// shortLimits are two versions of a limit of each algorithm that has a short way.
func shortLimits() (all []*tidegate.Limit) {
	for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SlidingLog, tidegate.SubWindows} {
		for _, events := range []int64{5, 9} {
			spec := tidegate.Spec{Name: a.String(), Algorithm: a, Events: events, Period: time.Second}
			if a == tidegate.SubWindows {
				spec.Parts = 4
			}
			all = append(all, tidegate.MustLimit(spec))
		}
	}
	return append(all,
		tidegate.MustLimit(tidegate.Spec{Name: "ceiling", Algorithm: tidegate.SlidingWindow, Events: 6, Period: time.Second, Ceiling: true}),
		tidegate.MustLimit(tidegate.Spec{Name: "whole parts", Algorithm: tidegate.SubWindows, Events: 6, Period: time.Second, Parts: 4, Ceiling: true}),
		tidegate.MustLimit(tidegate.Spec{Name: "stamped", Algorithm: tidegate.SlidingLog, Events: 6, Period: time.Second, CountRejected: true}),
		tidegate.MustLimit(tidegate.Spec{Name: "day", Algorithm: tidegate.Quota, Events: 7, Calendar: tidegate.Day}),
		tidegate.MustLimit(tidegate.Spec{Name: "queue", Algorithm: tidegate.LeakyBucket, Events: 5, Period: time.Second}),
	)
}

// twins are a store that takes the short way where it can, and one that never does. They
// are asked the same, at the same time.
type twins struct {
	now         time.Time
	short, long *Store
	limits      []*tidegate.Limit
}

func newTwins() *twins {
	w := &twins{now: time.Unix(1_800_000_000, 0), limits: shortLimits()}
	clock := Config{Now: func() time.Time { return w.now }}
	clock.MaxBytes = DefaultMaxBytes
	key := newHashKey() // one for both: they forget the same keys at the same time
	w.short, w.long = open(clock, key), open(clock, key)
	return w
}

// raceTicks is by how much the short way may decide later than its clock says, if a state was
// charged later: a record is stamped then, and the receipt says so.
const raceTicks = 1000 * algo.Micro

func (w *twins) take(t *testing.T, checks []tidegate.Check) {
	t.Helper()
	for _, l := range w.limits {
		_, err := w.short.compile(l)
		lim, errLong := w.long.compile(l)
		if err != nil || errLong != nil {
			t.Fatal(err, errLong)
		}
		lim.short = longWay
	}
	got, gotErr := w.short.Take(t.Context(), checks, 1)
	want, wantErr := w.long.Take(t.Context(), checks, 1)
	if at := want.Receipt.At; got.Receipt.At-at <= raceTicks && got.OK {
		got.Receipt.At = at
	}
	if gotErr != nil || wantErr != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("at %s, %v:\nshort %+v %v\nlong  %+v %v", w.now.Format(time.StampMicro), checks, got, gotErr, want, wantErr)
	}
}

// FuzzShortWay lets bytes ask both ways: one check or up to 17, of limits in two versions,
// while time passes, stands still and is set back.
func FuzzShortWay(f *testing.F) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		tape := make([]byte, 900)
		for i := range tape {
			tape[i] = byte(rng.Uint32())
		}
		f.Add(tape)
	}
	steps := [...]time.Duration{0, 0, 0, 0, time.Nanosecond, time.Microsecond, time.Millisecond, 60 * time.Millisecond, 100 * time.Millisecond, 249 * time.Millisecond, 250 * time.Millisecond, 700 * time.Millisecond, time.Second, 1900 * time.Millisecond, 5 * time.Second, -3 * time.Millisecond, -2 * time.Second}
	f.Fuzz(func(t *testing.T, tape []byte) {
		w := newTwins()
		next := func() int {
			if len(tape) == 0 {
				return 0
			}
			b := tape[0]
			tape = tape[1:]
			return int(b)
		}
		narrow, width := next()%2 == 0, 1+next()%17
		for len(tape) > 0 {
			w.now = w.now.Add(steps[next()%len(steps)])
			n := 1
			if !narrow {
				n = 1 + next()%width
			}
			checks := make([]tidegate.Check, n)
			for i := range checks {
				b := next()
				checks[i] = tidegate.Check{Limit: w.limits[b%len(w.limits)], Key: fmt.Sprint(b / 128), Cost: int64(1 + b/64%2)}
				if n == 1 {
					checks[i].Floor = int64(next() % 8 / 6)
				}
				if i > 0 && next()%4 > 0 { // mostly of one algorithm
					checks[i].Limit = checks[0].Limit
					checks[i].Key = fmt.Sprint(i)
				}
			}
			w.take(t, checks)
		}
	})
}

// Records of hundreds of entries, which grow from one page to several, wrap around and empty
// again, are charged alike both ways.
func TestShortWayOfLongRecords(t *testing.T) {
	for _, spec := range []tidegate.Spec{
		{Name: "log", Algorithm: tidegate.SlidingLog, Events: 700, Period: time.Second},
		{Name: "parts", Algorithm: tidegate.SubWindows, Events: 700, Period: time.Second, Parts: tidegate.MaxParts},
	} {
		rng := rand.New(rand.NewPCG(1, 2))
		w := newTwins()
		w.limits = []*tidegate.Limit{tidegate.MustLimit(spec)}
		for range 6000 {
			step := time.Duration(rng.IntN(3000)) * time.Microsecond
			if rng.IntN(1000) == 0 {
				step = time.Duration(rng.IntN(2000)) * time.Millisecond
			}
			w.now = w.now.Add(step)
			w.take(t, []tidegate.Check{{Key: "a", Limit: w.limits[0], Cost: int64(1 + rng.IntN(2))}})
		}
	}
}
