package main

import (
	"fmt"

	"tidegate.dev/tidegate/bench/internal/rig"
)

// summary is the last line: what is promised of matching.
type summary struct {
	few, many float64 // nanoseconds, among ten rules and a thousand
	ratio     float64 // many / few, in the median round
	allocs    float64 // per request
}

func (s summary) String() string {
	return fmt.Sprintf("bench-rules: 10 rules %.0fns 1000 rules %.0fns allocs %s", s.few, s.many, rig.Allocs(s.allocs))
}

const (
	mostRatio = 1.5
	mostNanos = 1000
)

func (s summary) missed() []string {
	var missed []string
	if s.ratio > mostRatio {
		missed = append(missed, fmt.Sprintf("a thousand rules take %.2fx the time of ten, the bar is at most %.1fx", s.ratio, mostRatio))
	}
	if s.many > mostNanos {
		missed = append(missed, fmt.Sprintf("a thousand rules take %.0fns, the bar is at most %dns", s.many, mostNanos))
	}
	if s.allocs >= rig.FewestAllocs {
		missed = append(missed, fmt.Sprintf("allocs is %.2f, the bar is none", s.allocs))
	}
	return missed
}
