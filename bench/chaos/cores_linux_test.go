package main

import (
	"context"
	"runtime"
	"testing"
	"time"
)

// Each core is watched by a thread of its own until the end of the row; no nap is shorter than asked for.
func TestWatchCores(t *testing.T) {
	before := runtime.NumGoroutine()
	ctx, stop := context.WithCancel(t.Context())
	p := new(probe)
	p.watchCores(ctx)
	if n := runtime.NumGoroutine() - before; n < 1 {
		t.Errorf("%d threads watch", n)
	}
	for start := time.Now(); p.take().Oversleep == 0; {
		if time.Since(start) > time.Minute {
			t.Fatal("nothing was noted")
		}
		time.Sleep(time.Millisecond)
	}
	stop()
	for start := time.Now(); runtime.NumGoroutine() > before; {
		if time.Since(start) > time.Minute {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
		time.Sleep(time.Millisecond)
	}
}
