package main

import (
	"fmt"
	"math"
)

// shape is a kind of traffic.
type shape struct {
	name    string
	about   string           // for the reader of the tables
	clients int              // at scale 1
	make    func(t *traffic) // adds the requests of one client
}

// shapes returns all shapes. Each lasts for length, a fraction up to 1, of the time in its about.
func shapes(length float64) []shape {
	long := length * 10 * hour
	var all []shape
	for _, x := range []float64{0.5, 0.8, 0.95, 1.1, 2, 10} {
		all = append(all, poisson(long, x))
	}
	return append(all,
		onOff(long, 10, 50, 4),
		onOff(long, 5, 120, 20),
		onOff(long, 120, 600, 3),
		shape{
			"cron", "150 requests within 2 s, each minute at the same second; 60 clients, each at another", 60,
			func(t *traffic) { t.cron(long, 150, 2) },
		},
		shape{
			"boundary", "every 3 minutes: 100 in the last second of a minute, 100 in the first of the next", 1,
			func(t *traffic) { boundary(t, long) },
		},
		shape{
			"hammer", "every 4 minutes: 100 in the last 20 ms of a minute, then 200/s for 62 s", 1,
			func(t *traffic) { hammer(t, long) },
		},
		shape{
			"day", "20,000 users over 24 h, the n-th asking 3/n times the limit, in clumps, more by day than by night", 20_000,
			func(t *traffic) { t.diurnal(length*day, 3*fair/float64(t.client+1)) },
		},
		shape{
			"mostly quiet", "20,000 users over 24 h, at most half the limit on average; one in 1000 asks 5x for 10 minutes", 20_000,
			func(t *traffic) { quiet(t, length*day) },
		},
	)
}

func poisson(long, x float64) shape {
	return shape{
		name:    fmt.Sprintf("steady %gx", x),
		about:   fmt.Sprintf("independent requests at %g times the limit, 10 h", x),
		clients: int(20/x) + 2,
		make: func(t *traffic) {
			offset := t.Float64() * 60
			t.poisson(offset, offset+long, fair*x)
		},
	}
}

func onOff(long, on, off, x float64) shape {
	mean := x * on / (on + off)
	return shape{
		name:    fmt.Sprintf("on/off %gs at %gx", on, x),
		about:   fmt.Sprintf("on for %g s at %g times the limit, off for %g s, on average; %.2g in the mean", on, x, off, mean),
		clients: 20,
		make:    func(t *traffic) { t.onOff(long, on, off, fair*x) },
	}
}

// boundary attacks algorithms that count by the minute.
func boundary(t *traffic, long float64) {
	for turn := 60.0; turn < long; turn += 180 {
		boundaryAt(t, turn)
	}
}

func boundaryAt(t *traffic, turn float64) {
	t.evenly(events, turn-1, turn)
	t.evenly(events, turn, turn+1)
}

// hammer attacks algorithms that weigh the count of a window, or of a part of one, as if its
// requests were spread evenly: all are at its end, so that the estimate has let them go long
// before they leave the true window.
func hammer(t *traffic, long float64) {
	for turn := 60.0; turn < long; turn += 240 {
		hammerAt(t, turn)
	}
}

func hammerAt(t *traffic, turn float64) {
	t.evenly(events, turn-0.02, turn)
	t.evenly(62*200, turn, turn+62)
}

// quiet is what a healthy service sees: nearly everybody is far below the limit.
func quiet(t *traffic, long float64) {
	rate := min(0.5, 0.2*math.Sqrt(10/float64(t.client+1)))
	t.poisson(0, long, fair*rate)
	if t.client%1000 == 999 {
		from := t.Float64() * max(0, long-600)
		t.poisson(from, from+600, fair*5)
	}
}
