package main

import "slices"

// siege is one attack, told over time.
type siege struct {
	title string
	how   string
	about string // what comes out, for those who cannot see the plot
	make  func(t *traffic)
}

// The windows of a siege turn at siegeTurn and are looked at from siegeFrom on.
const (
	siegeFrom = 45.0
	siegeTurn = 60.0
	siegeEnd  = 180.0
)

var boundarySiege = siege{
	title: "Admitted in the last 60 s, around an attack on a boundary",
	how:   "100 requests in the last second before 1:00, 100 in the first second after it, then 3 each second. The limit is 100 per minute.",
	about: "fixed_window jumps to twice the limit, token_bucket and sliding_window climb to it within a minute, the others stay within the limit.",
	make: func(t *traffic) {
		boundaryAt(t, siegeTurn)
		t.evenly(3*(siegeEnd-siegeTurn-1), siegeTurn+1, siegeEnd)
	},
}

var hammerSiege = siege{
	title: "The worst case of what interpolates: burst, then hammer",
	how:   "100 requests in the last 20 ms before 1:00, then 200 each second for 62 s, then none. The limit is 100 per minute.",
	about: "sub_windows with 60 parts reaches nearly twice the limit for less than a second, one minute after the burst; sliding_window climbs to it over the minute; with ceiling, and with the log, nothing passes the limit.",
	make:  func(t *traffic) { hammerAt(t, siegeTurn) },
}

func (s siege) requests() []int64 {
	t := newTraffic(0, s.title, 0, nil)
	s.make(t)
	return t.sorted()
}

// point is how many were admitted in the last window at a second.
type point struct {
	second float64
	count  int
}

// timeline looks at c eight times a second, and gives the most it admitted.
func (s siege) timeline(c contestant) (points []point, most int64) {
	var (
		judged  score
		history history
	)
	judged.play(newGate(c), &history, s.requests())
	g := newGate(c)
	var admitted []int64
	for _, us := range s.requests() {
		if g.take(us) {
			admitted = append(admitted, us)
		}
	}
	upTo := func(us int64) int {
		n, _ := slices.BinarySearch(admitted, us+1)
		return n
	}
	for i := siegeFrom * 8; i <= siegeEnd*8; i++ {
		us := start + int64(i*1e6/8)
		points = append(points, point{i / 8, upTo(us) - upTo(us-window)})
	}
	return points, judged.most
}
