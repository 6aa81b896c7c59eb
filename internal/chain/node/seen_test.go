package node

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
)

func TestSeen(t *testing.T) {
	s := newSeen(4) // one set
	f := func(name uint64, used int64, when time.Duration) {
		t.Helper()
		if u, w, _ := s.look(name); u != used || w != when {
			t.Errorf("of %d: %d at %s, want %d at %s", name, u, w, used, when)
		}
	}
	f(1, 0, 0)
	for i := range uint64(4) {
		s.note(i+1, int64(10*i), 100, time.Duration(i+1)*time.Second)
	}
	f(1, 0, time.Second)
	f(4, 30, 4*time.Second)
	s.note(5, 50, 100, 5*time.Second) // the one seen longest ago goes
	f(1, 0, 0)
	f(5, 50, 5*time.Second)
	f(2, 10, 2*time.Second)
	s.note(5, 51, 100, 5*time.Second+50*time.Millisecond)
	f(5, 51, 5*time.Second+50*time.Millisecond)
	s.note(5, 49, 100, 5*time.Second+60*time.Millisecond) // a little less, just now
	f(5, 51, 5*time.Second+50*time.Millisecond)
	s.note(5, 53, 100, 5*time.Second+100*time.Millisecond)
	f(5, 53, 5*time.Second+100*time.Millisecond)
	s.note(5, 40, 100, 5*time.Second+101*time.Millisecond)
	f(5, 40, 5*time.Second+101*time.Millisecond)
	s.note(5, 1<<40, 1<<41, 6*time.Second) // as much as there is room for
	f(5, seenMost, 6*time.Second)
	_, _, word := s.look(5)
	s.forget(5, word)
	f(5, 0, 0)
	s.note(5, 60, 100, 7*time.Second)
	s.forget(5, word) // there is something newer
	f(5, 60, 7*time.Second)
}

// Readers and writers of one set never take halves of two entries for one.
func TestSeenIsNeverTorn(t *testing.T) {
	s := newSeen(4)
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			for i := range 20_000 {
				name := uint64(w*2+i%2) + 1
				s.note(name, int64(name)*1000, 10, time.Duration(i)*time.Second)
				if used, _, word := s.look(name); word != 0 && used != int64(name)*1000 {
					t.Errorf("of %d: %d", name, used)
					return
				}
				if _, _, word := s.look(name); i%7 == 0 {
					s.forget(name, word)
				}
			}
		})
	}
	all.Wait()
}

// A key goes on in the local store with what was last seen of it, whatever the
// algorithm and whether it was admitted or refused, less what has drained since.
func TestKeysGoOnWithWhatWasSeen(t *testing.T) {
	f := func(spec tidegate.Spec, used int, pause time.Duration, want int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			spec.Terms = &tidegate.Terms{Handling: tidegate.Handling{OnStoreFailure: tidegate.FailLocal}}
			l := tidegate.MustLimit(spec)
			way := &faulty{}
			g := newNode(way, Options{})
			time.Sleep(time.Minute)
			for range used {
				spend(t, g, l, "k", 1)
				time.Sleep(time.Millisecond)
			}
			time.Sleep(pause)
			way.set(broken)
			got := 0
			for range 3 { // flaps do not empty it, nor count twice
				got += spend(t, g, l, "k", 200)
				way.set(none)
				_, _ = g.Take(t.Context(), []tidegate.Check{{Key: "k", Limit: l}}, 1)
				way.set(broken)
			}
			if got < want-1 || got > want {
				t.Errorf("%s, %d asked for, %s ago: %d more admitted, want %d", l, used, pause, got, want)
			}
			_ = g.Close()
		})
	}
	for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.LeakyBucket, tidegate.FixedWindow, tidegate.SlidingLog, tidegate.SlidingWindow, tidegate.SubWindows} {
		spec := tidegate.Spec{Algorithm: a, Events: 100, Period: time.Hour}
		if a == tidegate.LeakyBucket {
			spec.Burst = 99
		}
		f(spec, 0, 0, 100)
		f(spec, 60, 0, 40)
		f(spec, 60, time.Minute, 41)
		f(spec, 100, 0, 0)
		f(spec, 150, time.Minute, 1) // at most what may have left in a minute
	}
	f(tidegate.Spec{Algorithm: tidegate.Quota, Events: 100, Calendar: tidegate.Day}, 60, time.Hour, 40)
	f(tidegate.Spec{Algorithm: tidegate.Quota, Events: 100, Calendar: tidegate.Day}, 60, 24*time.Hour, 100)
	f(tidegate.Spec{Algorithm: tidegate.FixedWindow, Events: 100, Period: time.Hour}, 100, time.Hour, 100)
	f(tidegate.Spec{Algorithm: tidegate.TokenBucket, Events: 100, Period: time.Hour}, 100, time.Hour, 100)
}

// Of several limits, what the answer is about is remembered under its own key.
func TestSeenOfAVector(t *testing.T) {
	way := &faulty{}
	g := newNode(way, Options{Deadline: patient})
	defer g.Close()
	wide, narrow := limit("wide", 1000, tidegate.FailLocal), limit("narrow", 10, tidegate.FailLocal)
	for range 10 {
		_, _ = g.Take(t.Context(), []tidegate.Check{{Key: "all", Limit: wide, Cost: 1}, {Key: "ann", Limit: narrow, Cost: 1}}, 1)
	}
	way.set(broken)
	for key, want := range map[string]int{"ann": 0, "bob": 10, "all": 10} {
		if n := spend(t, g, narrow, key, 20); n != want {
			t.Errorf("%d admitted for %s, want %d", n, key, want)
		}
	}
	if n := spend(t, g, wide, "all", 2000); n != 1000 {
		t.Errorf("%d admitted of the wide one, which no answer was about; want 1000", n)
	}
}

// However many write about a key at once, it is known afterwards what one of them saw.
func TestSeenByManyAtOnce(t *testing.T) {
	const writers, rounds = 4, 20_000
	s := newSeen(4)
	var begun, done atomic.Int64
	for i := range int64(writers) {
		go func() {
			for round := int64(1); round <= rounds; round++ {
				for begun.Load() < round {
					runtime.Gosched()
				}
				s.note(7, (100+50*i)%1000, 1000, time.Duration(round*writers+i)*time.Second)
				done.Add(1)
			}
		}()
	}
	for round := int64(1); round <= rounds; round++ {
		begun.Store(round)
		for done.Load() < round*writers {
			runtime.Gosched()
		}
		used, when, _ := s.look(7)
		if i := int64(when/time.Second) - round*writers; i < 0 || i >= writers || used != 100+50*i {
			t.Fatalf("round %d: %d used at %s", round, used, when)
		}
	}
}
