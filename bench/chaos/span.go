package main

import (
	"slices"
	"time"
)

// span is from when a request was sent until it was answered: it was decided in between.
type span struct{ sent, answered time.Time }

// allowance is how much may pass in any stretch of time: a burst, and so much a second.
type allowance struct{ burst, rate float64 }

func (a allowance) in(w time.Duration) float64 { return a.burst + a.rate*w.Seconds() }

// excess is by how much more than allowed passed in the worst stretch of time, 0 if
// never. Only those count in a stretch that were both sent and answered in it.
func excess(passes []span, most allowance) (worst float64) {
	byEnd := slices.Clone(passes)
	slices.SortFunc(byEnd, func(a, b span) int { return a.answered.Compare(b.answered) })
	for _, first := range passes {
		n := 0.0
		for _, p := range byEnd {
			if p.sent.Before(first.sent) {
				continue
			}
			n++
			worst = max(worst, n-most.in(p.answered.Sub(first.sent)))
		}
	}
	return worst
}

// mostIn returns the most that passed in any stretch of time of this length.
func mostIn(passes []span, w time.Duration) (most int) {
	for _, first := range passes {
		n := 0
		for _, p := range passes {
			if !p.sent.Before(first.sent) && p.answered.Sub(first.sent) < w {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}
