package testdep

import (
	"testing"
	"testing/synctest"
	"time"
)

// eventually runs Eventually as a test would, and tells how it ended, and after how long.
func eventually(t *testing.T, ok func() bool) (w *witness, took time.Duration) {
	t.Helper()
	w = &witness{TB: t, ended: "ran"}
	start, done := time.Now(), make(chan struct{})
	go func() {
		defer close(done)
		Eventually(w, "the lamp is lit", ok)
	}()
	<-done
	return w, time.Since(start)
}

func TestEventually(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, after := range []time.Duration{0, time.Millisecond, 100 * time.Millisecond, 59 * time.Second, time.Minute} {
			looks, start := 0, time.Now()
			w, took := eventually(t, func() bool { looks++; return time.Since(start) >= after })
			if w.ended != "ran" || took < after || took > after+20*time.Millisecond {
				t.Errorf("what holds after %s: it %s after %s, %q", after, w.ended, took, w.told)
			}
			if most := 20 + int(after/(20*time.Millisecond)); looks > most {
				t.Errorf("what holds after %s is looked at %d times", after, looks)
			}
		}
		w, took := eventually(t, func() bool { return false })
		if w.ended != "failed" || w.told != "not after a minute: the lamp is lit" || took < time.Minute || took > time.Minute+time.Second {
			t.Errorf("what never holds: it %s after %s, %q", w.ended, took, w.told)
		}
		if w.helpers == 0 {
			t.Error("the failure is shown where it is written, and not where it is asked for")
		}
	})
}

// A test may look once more at what it says in the end.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		if !Await(time.Second, func() bool { n++; return n == 3 }) || n != 3 {
			t.Errorf("after %d looks of 3", n)
		}
		if start := time.Now(); Await(time.Hour, func() bool { return false }) || time.Since(start) < time.Hour {
			t.Error("it does not wait for an hour, or says that what never holds does")
		}
	})
}
