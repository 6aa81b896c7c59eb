package queue_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/queue"
	"tidegate.dev/tidegate/store/memory"
)

// slow is a store that takes its time.
type slow struct {
	chain.Backend
	takes time.Duration
}

func (s slow) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	time.Sleep(s.takes)
	return s.Backend.Take(ctx, checks, n)
}

// What is asked for is timed, once; the time in a queue does not count, whichever queue it is.
func TestTime(t *testing.T) {
	const takes = 3 * time.Millisecond
	queued := &tidegate.Terms{Handling: tidegate.Handling{Queue: &tidegate.Queue{Places: 5, MaxWait: time.Minute}}}
	for _, algorithm := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.LeakyBucket, tidegate.FixedWindow, tidegate.SlidingLog, tidegate.SubWindows} {
		t.Run(algorithm.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told []time.Duration
				next := new(atomic.Bool)
				s := queue.New(slow{chain.Adapt(memory.New()), takes}).Time(next, func(took time.Duration) { told = append(told, took) })
				spec := tidegate.Spec{Name: "x", Events: 1, Period: time.Second, Algorithm: algorithm}
				c := tidegate.Check{Key: "k", Cost: 1}
				switch algorithm {
				case tidegate.TokenBucket, tidegate.LeakyBucket:
					spec.Burst, c.MaxWait = 1, time.Minute
				default:
					spec.Terms = queued
				}
				c.Limit = tidegate.MustLimit(spec)
				waited := 0
				for i := range 6 {
					next.Store(i%2 == 0)
					d, err := s.Take(t.Context(), []tidegate.Check{c}, 1)
					if err != nil || !d.OK {
						t.Fatalf("request %d: %+v, %v", i, d, err)
					}
					if d.Queued {
						waited++
					}
					if next.Load() {
						t.Errorf("request %d was not timed", i)
					}
				}
				if want := []time.Duration{takes, takes, takes}; !slices.Equal(told, want) {
					t.Errorf("told %v, want %v", told, want)
				}
				if waited < 4 {
					t.Errorf("%d of 6 waited", waited)
				}
			})
		})
	}
}
