package eventual

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// A flood of keys is held in so much memory, whatever becomes of the store; keys that the store knows
// of make room, and are what they were when they come back.
func TestBoundOfKeys(t *testing.T) {
	testdep.SkipUnderRace(t)
	for _, a := range algorithms {
		for _, away := range []bool{false, true} {
			t.Run(fmt.Sprint(a, away), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFleet(t, 1, 0, nil)
					defer f.close()
					s := f.nodes[0]
					l := limitOf(a, 1, time.Hour)
					s.table.most = 40 * (1 + windowsOf(l)/windowsOfWeight) // of 64 shards
					f.ask(0, "first", l)
					time.Sleep(2 * DefaultInterval)
					f.wires[0].setAway(away)
					for i := range 20_000 {
						if i%500 == 0 {
							time.Sleep(2 * DefaultInterval)
						}
						f.ask(0, fmt.Sprint(i), l)
					}
					is := s.Status()
					if most := 40 * shards; is.Keys > most {
						t.Errorf("%d keys are held, want at most %d", is.Keys, most)
					}
					if forgets := is.Forgotten > 0; forgets != away {
						t.Errorf("%d keys are forgotten that the store does not know of", is.Forgotten)
					}
					if !away && f.ask(0, "first", l) {
						t.Error("a key that had to make room begins afresh")
					}
				})
			})
		}
	}
}

// Where the limit says so, new keys are refused instead.
func TestRefuseNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, 0, nil)
		defer f.close()
		f.wires[0].setAway(true)
		s := f.nodes[0]
		s.table.most = 1
		spec := limitOf(tidegate.FixedWindow, 5, time.Hour).Spec
		spec.OnFull = tidegate.RefuseNew
		l := tidegate.MustLimit(spec)
		full := 0
		for i := range 1000 {
			d, err := s.Take(context.Background(), []tidegate.Check{{Key: fmt.Sprint(i), Limit: l, Cost: 1}}, 1)
			if err != nil {
				t.Fatal(err)
			}
			if errors.Is(d.Err, tidegate.ErrFull) {
				full++
			} else if !d.OK {
				t.Errorf("%+v", d)
			}
		}
		if is := s.Status(); full != 1000-is.Keys || is.Keys > shards || is.Forgotten > 0 {
			t.Errorf("%d refused, %+v", full, is)
		}
	})
}

// Limits of one request that have no room beside each other are decided nevertheless, and keep what they
// count.
func TestLimitsOfOneRequestMakeNoRoomForEachOther(t *testing.T) {
	f := newFleet(t, 1, 0, nil)
	defer f.close()
	s := f.nodes[0]
	s.table.most = 1
	var checks []tidegate.Check
	for _, a := range algorithms {
		for _, events := range []int64{3, 4} {
			l := limitOf(a, events, 12*time.Hour)
			spec := l.Spec
			spec.Name = fmt.Sprint(a, events)
			checks = append(checks, tidegate.Check{Key: "one", Limit: tidegate.MustLimit(spec), Cost: 1})
		}
	}
	f.ask(0, "one", limitOf(tidegate.FixedWindow, 5, time.Hour)) // this one does
	admitted := make(chan int)
	go func() {
		n := 0
		for range 6 {
			d, err := s.Take(context.Background(), checks, 1)
			if err != nil || d.Err != nil {
				t.Errorf("%v, %v", err, d.Err)
			}
			n += int(d.Granted)
		}
		admitted <- n
	}()
	select {
	case n := <-admitted:
		if n != 3 {
			t.Errorf("%d of 6 are admitted, want 3", n)
		}
	case <-time.After(time.Minute):
		t.Fatal("a request is not decided")
	}
	if is := s.Status(); is.Keys != len(checks) {
		t.Errorf("%+v, want %d keys", is, len(checks))
	}
}

// What was given back in one window does not hide what another window has not told: a key that is
// dropped then counts as forgotten.
func TestForgottenAfterGivingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, 0, nil)
		defer f.close()
		s := f.nodes[0]
		l := limitOf(tidegate.SubWindows, 10, time.Hour)
		s.table.most = 1 + windowsOf(l)/windowsOfWeight
		take := []tidegate.Check{{Key: "one", Limit: l, Cost: 5}}
		first, err := s.Take(t.Context(), take, 1)
		if err != nil || !first.OK {
			t.Fatal(first, err)
		}
		time.Sleep(time.Hour / 2) // another part of the window
		f.wires[0].setAway(true)
		back := []tidegate.Check{{Key: "one", Limit: l, Cost: -5}}
		if err := s.Adjust(t.Context(), first.Receipt, back); err != nil {
			t.Fatal(err)
		}
		if d, err := s.Take(t.Context(), take, 1); err != nil || !d.OK {
			t.Fatal(d, err)
		}
		for i := 0; ; i++ {
			if key := fmt.Sprint(i); s.table.shard(key) == s.table.shard("one") {
				f.ask(0, key, l)
				break
			}
		}
		if is := s.Status(); is.Keys != 1 || is.Forgotten != 1 {
			t.Errorf("%+v", is)
		}
	})
}

// A key that is exchanged often waits for the next interval once.
func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, 100*time.Microsecond, nil)
		defer f.close()
		s := f.nodes[0]
		l := limitOf(tidegate.FixedWindow, 1000, 12*time.Hour)
		for i := range 300 { // each new key is exchanged at once, and with it what is due soon
			f.ask(0, fmt.Sprint("new", i), l)
			for hot := range 5 {
				f.ask(0, fmt.Sprint("hot", hot), limitOf(tidegate.FixedWindow, 10, 12*time.Hour))
			}
			s.queue.mu.Lock()
			n := len(s.queue.due)
			s.queue.mu.Unlock()
			if n > i+1+5 {
				t.Fatalf("%d wait, of %d keys", n, i+1+5)
			}
		}
	})
}
