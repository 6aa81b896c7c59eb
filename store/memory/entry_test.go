package memory

import (
	"fmt"
	"math"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// What is kept in a slot comes out of it again, and is told from a record.
func TestEntryCell(t *testing.T) {
	for _, stamp := range []int64{0, 1, 1 << 40, int64(slowMask), int64(slowMask) + 1, algo.LastInstant / algo.Micro, -1, -1 << 50, math.MinInt64 >> 1} {
		for _, count := range []int64{0, 1, 2 * tidegate.MaxLogEvents, 2 * tidegate.MaxCount} {
			for _, parts := range []int64{0, 1, 60, tidegate.MaxParts} {
				if parts == 0 && count > 2*tidegate.MaxLogEvents {
					continue // not a log's
				}
				want := algo.Entry{Stamp: stamp, Count: count, Parts: parts}
				c := entryCell(want)
				if count == 0 {
					want = algo.Entry{}
				}
				var room entryRoom
				r := entryOf(c).Record(&room)
				got, ok := r.Entry()
				if entryOf(c) != want || got != want || !ok || r.Used() != count || c.handle() != 0 || c.slow&^slowMask|c.fast&^fastMask != 0 {
					t.Errorf("%+v became %+v, and %+v as a record", want, entryOf(c), got)
				}
			}
		}
	}
	h := newHandle(math.MaxUint32, 191, paged)
	if c := (cell{slow: uint64(h)}); c.isEntry() || c.handle() != h || entryOf(c) != (algo.Entry{}) {
		t.Errorf("%+v is not the record %x", c, h)
	}
}

// Keys that have used one event have no record, whoever asked; the second event of a log takes one.
func TestOneEntryTakesNoRecord(t *testing.T) {
	for _, a := range []tidegate.Algorithm{tidegate.SlidingLog, tidegate.SubWindows} {
		s, clock := openAt(DefaultMaxBytes)
		l := limitOf(a, 3, tidegate.EvictLeast)
		const keys = 2000
		for k := range keys {
			checks := []tidegate.Check{{Key: fmt.Sprint(k), Limit: l, Cost: 1}, {Key: fmt.Sprint("beside", k), Limit: l, Cost: 1}}
			if d, err := s.Take(t.Context(), checks[:1+k%2], 1); err != nil || !d.OK {
				t.Fatal(d, err)
			}
		}
		records := func() (n int) {
			for g := range s.byID[l.Identity()].segments() {
				n += len(g.records.pages)
			}
			return n
		}
		if n := records(); n != 0 {
			t.Errorf("%s: %d pages of records for keys with one event", a, n)
		}
		for range 2 {
			clock.pass(time.Second)
			if d := ask1(t, s, l, "0"); !d.OK {
				t.Errorf("%s: %+v", a, d)
			}
		}
		if d := ask1(t, s, l, "0"); d.OK {
			t.Errorf("%s: a fourth event was admitted", a)
		}
		if want := map[tidegate.Algorithm]int{tidegate.SlidingLog: 1}[a]; records() != want {
			t.Errorf("%s: %d pages of records for a key with three events, want %d", a, records(), want)
		}
	}
}
