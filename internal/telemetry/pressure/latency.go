package pressure

import (
	"math/bits"
	"sync/atomic"
	"time"
)

const (
	slotLength   = time.Second
	slotCount    = 10                     // in the window
	recentSlots  = 3                      // of them, for what has to see soon what comes of it
	latencyEvery = 100 * time.Millisecond // a new percentile at most
)

// latency is how long the upstream takes to answer.
type latency struct {
	window window
	measured
}

// p99 returns the 99th percentile of the last ten seconds, in seconds. If nothing was answered in that
// time, it returns for how long the upstream has been silent; 0 if nothing was asked.
func (l *latency) p99(u *unanswered, now time.Duration) float64 {
	return p99(&l.measured, &l.window, slotCount, u, now)
}

// p99 returns the p99 of the last slots of a window. m caches it for latencyEvery.
func p99(m *measured, w *window, slots int64, u *unanswered, now time.Duration) float64 {
	return m.read(now, latencyEvery, func(*reading) reading {
		value, n := w.percentile(99, slots, now)
		if n == 0 {
			value = u.silent(now)
		}
		return reading{value: value.Seconds(), known: true}
	}).value
}

// window counts durations by their size, in slots of a second. Recording takes a load and an addition.
// A new second gets a new slot; the old one is left to goroutines that still write to it.
type window struct {
	slots [slotCount]atomic.Pointer[slot]
}

type slot struct {
	number int64 // of the second
	counts [buckets]atomic.Uint32
}

func (w *window) record(took, now time.Duration) {
	number := int64(now / slotLength)
	place := &w.slots[number%slotCount]
	s := place.Load()
	if s == nil || s.number < number {
		fresh := &slot{number: number}
		if place.CompareAndSwap(s, fresh) {
			s = fresh
		} else {
			s = place.Load()
		}
	}
	if s.number == number { // else it is too late to count
		s.counts[bucketOf(took)].Add(1)
	}
}

// percentile returns the percentile p of the n durations in the last slots of the window.
func (w *window) percentile(p, slots int64, now time.Duration) (value time.Duration, n int64) {
	var counts [buckets]int64
	number := int64(now / slotLength)
	for i := range w.slots {
		s := w.slots[i].Load()
		if s == nil || s.number <= number-slots {
			continue
		}
		for b := range s.counts {
			counts[b] += int64(s.counts[b].Load())
		}
	}
	for _, c := range counts {
		n += c
	}
	if n == 0 {
		return 0, 0
	}
	rank := (n*p + 99) / 100
	for b, c := range counts {
		if rank <= c {
			low, high := bucketBounds(b)
			return low + time.Duration(float64(high-low)*float64(rank)/float64(c)), n
		}
		rank -= c
	}
	return 0, n // not reached: the ranks add up to n
}

// Buckets are a sixteenth of a power of two wide, so that a percentile is wrong by
// less than the band of a comparator; the first is what takes no time.
const (
	firstBit = 10 // 1.024 µs
	lastBit  = 40 // 18 minutes
	subBits  = 4
	buckets  = 1 + (lastBit-firstBit+1)<<subBits
)

func bucketOf(d time.Duration) int {
	if d < 1<<firstBit {
		return 0
	}
	bit := bits.Len64(uint64(d)) - 1
	if bit > lastBit {
		return buckets - 1
	}
	sub := int(d>>(bit-subBits)) & (1<<subBits - 1)
	return 1 + (bit-firstBit)<<subBits + sub
}

// bucketBounds returns the range of a bucket: from low to below high.
func bucketBounds(b int) (low, high time.Duration) {
	if b == 0 {
		return 0, 1 << firstBit
	}
	b--
	shift := firstBit + b>>subBits - subBits
	sub := time.Duration(b & (1<<subBits - 1))
	return (1<<subBits + sub) << shift, (1<<subBits + sub + 1) << shift
}
