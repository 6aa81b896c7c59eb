package main

import "slices"

// attack is the traffic of an attack on a limit, and the texts of its plot.
type attack struct {
	title string
	how   string
	about string // what comes out, for those who cannot see the plot
	make  func(t *traffic)
}

// The windows of an attack turn at attackTurn and are looked at from attackFrom on.
const (
	attackFrom = 45.0
	attackTurn = 60.0
	attackEnd  = 180.0
)

var boundaryAttack = attack{
	title: "Admitted in the last 60 s, around an attack on a boundary",
	how:   "100 requests in the last second before 1:00, 100 in the first second after it, then 3 each second. The limit is 100 per minute.",
	about: "fixed_window jumps to twice the limit, token_bucket and sliding_window climb to it within a minute, the others stay within the limit.",
	make: func(t *traffic) {
		boundaryAt(t, attackTurn)
		t.evenly(3*(attackEnd-attackTurn-1), attackTurn+1, attackEnd)
	},
}

var hammerAttack = attack{
	title: "The worst case of what interpolates: burst, then hammer",
	how:   "100 requests in the last 20 ms before 1:00, then 200 each second for 62 s, then none. The limit is 100 per minute.",
	about: "sub_windows with 60 parts reaches nearly twice the limit for less than a second, one minute after the burst; sliding_window climbs to it over the minute; with ceiling, and with the log, nothing passes the limit.",
	make:  func(t *traffic) { hammerAt(t, attackTurn) },
}

func (a attack) requests() []int64 {
	t := newTraffic(0, a.title, 0, nil)
	a.make(t)
	return t.sorted()
}

// point is how many were admitted in the last window at a second.
type point struct {
	second float64
	count  int
}

// timeline looks at c eight times a second, and gives the most it admitted.
func (a attack) timeline(c contestant) (points []point, most int64) {
	var (
		judged  score
		history history
	)
	judged.play(newGate(c), &history, a.requests())
	g := newGate(c)
	var admitted []int64
	for _, us := range a.requests() {
		if g.take(us) {
			admitted = append(admitted, us)
		}
	}
	upTo := func(us int64) int {
		n, _ := slices.BinarySearch(admitted, us+1)
		return n
	}
	for i := attackFrom * 8; i <= attackEnd*8; i++ {
		us := start + int64(i*1e6/8)
		points = append(points, point{i / 8, upTo(us) - upTo(us-window)})
	}
	return points, judged.most
}
