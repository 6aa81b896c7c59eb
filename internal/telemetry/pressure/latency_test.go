package pressure

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

func TestBucketsHoldTheirDurations(t *testing.T) {
	var last time.Duration
	for b := range buckets {
		low, high := bucketBounds(b)
		if low != last || high <= low || bucketOf(low) != b || bucketOf(high-1) != b {
			t.Fatalf("bucket %d is %v to %v, after %v; they are in %d and %d", b, low, high, last, bucketOf(low), bucketOf(high-1))
		}
		if b > 0 && float64(high-low)/float64(low) > 1.0/16 {
			t.Errorf("bucket %d is %v to %v: too wide", b, low, high)
		}
		last = high
	}
	for _, d := range []time.Duration{-1, math.MinInt64} {
		if bucketOf(d) != 0 {
			t.Errorf("%v is in bucket %d", d, bucketOf(d))
		}
	}
	if bucketOf(math.MaxInt64) != buckets-1 {
		t.Errorf("the longest is in bucket %d", bucketOf(math.MaxInt64))
	}
}

// The percentile is within a bucket of that of the sorted durations.
func TestPercentileIsNearTheExactOne(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{1, 2, 99, 100, 101, 1000, 20_000} {
		var w window
		var all []time.Duration
		for range n {
			d := time.Duration(math.Exp(random.NormFloat64()*1.5) * float64(20*time.Millisecond))
			w.record(d, 3*time.Second)
			all = append(all, d)
		}
		slices.Sort(all)
		want := all[(n*99+99)/100-1]
		got, counted := w.percentile(99, slotCount, 3*time.Second)
		if off := math.Abs(float64(got-want)) / float64(want); counted != int64(n) || off > 1.0/16 {
			t.Errorf("of %d: got %v of %d, want %v: off by %.1f %%", n, got, counted, want, off*100)
		}
	}
}

func TestWindowSlides(t *testing.T) {
	var w window
	f := func(now time.Duration, n int64, least, most time.Duration) {
		t.Helper()
		got, counted := w.percentile(99, slotCount, now)
		if counted != n || got < least || got > most {
			t.Errorf("at %v: %v of %d, want %v to %v of %d", now, got, counted, least, most, n)
		}
	}
	const ms = time.Millisecond
	f(0, 0, 0, 0)
	w.record(800*ms, 500*ms)
	for range 99 {
		w.record(20*ms, 5*time.Second)
	}
	f(5*time.Second, 100, 19*ms, 22*ms) // one of a hundred is slow
	w.record(800*ms, 6*time.Second)
	f(6*time.Second, 101, 750*ms, 850*ms)
	f(9999*ms, 101, 750*ms, 850*ms)
	f(10*time.Second, 100, 19*ms, 22*ms) // the first has left
	f(14999*ms, 100, 19*ms, 22*ms)
	f(15*time.Second, 1, 750*ms, 850*ms)
	f(16*time.Second, 0, 0, 0)
	w.record(20*ms, 25*time.Second) // into the slot of second 5
	f(25*time.Second, 1, 19*ms, 22*ms)
	w.record(800*ms, 15*time.Second) // somebody who slept for ten seconds on the way here
	f(25*time.Second, 1, 19*ms, 22*ms)
}

// Nothing is lost while seconds change under those who record.
func TestWindowAtOnce(t *testing.T) {
	var w window
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 9000 {
				w.record(time.Duration(g+1)*time.Millisecond, time.Duration(i)*time.Millisecond)
				if i%1000 == 0 {
					w.percentile(99, slotCount, time.Duration(i)*time.Millisecond)
				}
			}
		})
	}
	wg.Wait()
	if _, n := w.percentile(99, slotCount, 9*time.Second); n != 36_000 {
		t.Errorf("%d were counted, want 36000", n)
	}
}
