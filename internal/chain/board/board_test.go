package board

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate/internal/chain"
)

// What is ordered anywhere is everywhere within a second, and Put returns when it is.
func TestEverywhereWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTeam(t, 5, false)
		time.Sleep(time.Second)
		for i := range w.all {
			start := time.Now()
			reach := w.put(i, "x", fmt.Sprint(i))
			if took := time.Since(start); took > 500*time.Millisecond || !reach.Everywhere() || len(reach.Has) != 5 || !slices.Equal(reach.Kept, []string{InStore}) {
				t.Errorf("after %s: %s", took, &reach)
			}
			w.want("at once", fmt.Sprint("x=", i))
		}
		if reach := w.end(3, "x"); !reach.Everywhere() {
			t.Errorf("ended: %s", &reach)
		}
		w.want("after its end", "")
		if _, err := w.all[2].End(t.Context(), "x"); !errors.Is(err, ErrUnknown) {
			t.Errorf("ended twice: %v", err)
		}
		w.put(4, "x", "again")
		w.want("put again", "x=again")
	})
}

// A record ends by itself, to the millisecond, though nobody says so.
func TestExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTeam(t, 2, true)
		if _, err := w.all[0].Put(t.Context(), Record{ID: "x", Expires: time.Now().Add(3 * time.Second)}); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		w.restart(1)
		time.Sleep(time.Until(start.Add(2 * time.Second)))
		w.want("before its end", "x=")
		time.Sleep(2 * time.Second)
		w.want("after its end", "")
		if _, err := w.all[0].Put(t.Context(), Record{ID: "x", Expires: time.Now()}); err == nil {
			t.Error("one that is over was taken")
		}
		if _, err := w.all[0].End(t.Context(), "x"); !errors.Is(err, ErrUnknown) {
			t.Errorf("ended after its end: %v", err)
		}
		time.Sleep(grace + time.Minute)
		for i, b := range w.all {
			if b.mu.Lock(); len(b.records) > 0 {
				t.Errorf("instance %d still remembers %d", i, len(b.records))
			}
			b.mu.Unlock()
		}
	})
}

// The last order counts whatever the clocks of instances and table show.
func TestClocksDiffer(t *testing.T) {
	for _, step := range []time.Duration{-400 * 24 * time.Hour, -time.Hour, -time.Second, time.Second, time.Hour, 400 * 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			w := newTeam(t, 3, true)
			until := time.Now().Add(30 * time.Minute)
			if _, err := w.all[0].Put(t.Context(), Record{ID: "timed", Expires: until}); err != nil {
				t.Fatal(err)
			}
			w.put(0, "a", "1")
			w.put(0, "b", "1")
			w.table.mu.Lock()
			w.table.ahead = step
			w.table.mu.Unlock()
			w.end(1, "a")
			w.put(2, "b", "2")
			w.want(fmt.Sprint("with a table that is ahead by ", step), "b=2 timed=")
			w.wires[1].set(true, false)
			w.put(1, "d", "1")
			w.end(1, "b")
			w.wires[1].set(false, false)
			time.Sleep(time.Second)
			w.want("and one that was cut off", "d=1 timed=")
			w.table.mu.Lock()
			w.table.ahead = 0
			w.table.mu.Unlock()
			w.end(2, "d")
			w.put(0, "b", "3")
			time.Sleep(time.Second)
			w.restart(0)
			w.restart(1)
			time.Sleep(2 * time.Second)
			w.want("set right again", "b=3 timed=")
			w.table.mu.Lock()
			defer w.table.mu.Unlock()
			if r := w.table.rows["timed"]; !r.Keep.After(until) {
				t.Error("the table has lost one whose time is not over")
			}
		})
	}
}

// All that can be wrong with an order is told, and changes nothing.
func TestBounds(t *testing.T) {
	b, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, r := range []Record{
		{},
		{ID: "A"},
		{ID: "a b"},
		{ID: "a/b"},
		{ID: strings.Repeat("a", MaxID+1)},
		{ID: "ä"},
		{ID: "a", Body: make([]byte, MaxBody+1)},
	} {
		if _, err := b.Put(t.Context(), r); err == nil {
			t.Errorf("%.50q with %d bytes was taken", r.ID, len(r.Body))
		}
	}
	if len(b.All()) > 0 {
		t.Errorf("all: %q", bodies(b))
	}
	for i := range MaxRecords {
		b.records[fmt.Sprint("x", i)] = &Record{ID: fmt.Sprint("x", i), Rev: int64(i + 1), keep: time.Now().Add(time.Hour)}
	}
	if _, err := b.Put(t.Context(), Record{ID: "one-more"}); !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "10000") {
		t.Errorf("one more than there may be: %v", err)
	}
	if _, err := b.Put(t.Context(), Record{ID: "x7", Body: []byte("changed")}); err != nil {
		t.Errorf("one that is replaced: %v", err)
	}
	if reach, err := b.End(t.Context(), "x7"); err != nil || len(reach.Kept) != 0 || !strings.Contains(reach.String(), "until this process ends") {
		t.Errorf("%s, %v", &reach, err)
	}
	if _, err := b.Put(t.Context(), Record{ID: "one-more"}); err != nil {
		t.Errorf("in the place of an ended one: %v", err)
	}
}

// A table of many records is read in pages, and one that has lost them gets them in pages.
func TestManyRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTeam(t, 2, false)
		const many = 3*chain.MaxChanged + 7
		for i := range many {
			r := Record{ID: fmt.Sprint("x", i), Rev: int64(i + 1), keep: time.Now().Add(forever)}
			w.all[0].mu.Lock()
			w.all[0].records[r.ID] = &r
			w.all[0].mu.Unlock()
		}
		time.Sleep(compareEvery + 2*time.Second)
		if got := len(w.all[1].All()); got != many {
			t.Errorf("%d of %d", got, many)
		}
		w.wires[0].mu.Lock()
		before := w.wires[0].calls
		w.wires[0].mu.Unlock()
		time.Sleep(compareEvery)
		w.wires[0].mu.Lock()
		defer w.wires[0].mu.Unlock()
		if calls := w.wires[0].calls - before; calls > int(compareEvery/DefaultEvery*10/9)+10 {
			t.Errorf("%d calls while nothing changes", calls)
		}
	})
}

// Watchers are told what is in force, in order.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTeam(t, 2, false)
		var told []string
		w.all[1].Watch(func(all []Record) { told = append(told, fmt.Sprint(len(all))) })
		w.put(0, "a", "")
		w.put(1, "b", "")
		w.end(0, "b")
		w.all[1].Close()
		if got := strings.Join(told, " "); got != "0 1 2 1" {
			t.Errorf("told %s", got)
		}
	})
}
