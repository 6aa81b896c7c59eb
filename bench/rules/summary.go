package main

import (
	"fmt"
	"time"

	"tidegate.dev/tidegate/bench/internal/rig"
)

// summary is the last line: what is promised of matching.
type summary struct {
	few, many float64 // nanoseconds, among ten rules and a thousand
	ratio     float64 // many / few, in the median round
	allocs    float64 // per request

	some, lots loaded // 10,000 rules, and 100,000
	reload     reloaded
}

func (s summary) String() string {
	return fmt.Sprintf("bench-rules: 10 rules %.0fns 1000 rules %.0fns allocs %s load 10000 %.2fs 100000 %.2fs %.0fB/rule reload worst %.2fms cpu %.2fms oversleep %.2fms",
		s.few, s.many, rig.Allocs(s.allocs), s.some.took.Seconds(), s.lots.took.Seconds(), s.lots.perRule,
		milliseconds(s.reload.worst), milliseconds(s.reload.cpu), milliseconds(s.reload.oversleep))
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

const (
	mostRatio   = 1.5
	mostNanos   = 1000
	mostSome    = time.Second
	mostLots    = 4 * time.Second
	mostPerRule = 1536
	mostReload  = time.Millisecond
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
	if s.some.took > mostSome {
		missed = append(missed, fmt.Sprintf("10,000 rules load in %.2fs, the bar is at most %s", s.some.took.Seconds(), mostSome))
	}
	if s.lots.took > mostLots {
		missed = append(missed, fmt.Sprintf("100,000 rules load in %.2fs, the bar is at most %s", s.lots.took.Seconds(), mostLots))
	}
	if s.lots.perRule > mostPerRule {
		missed = append(missed, fmt.Sprintf("a rule keeps %.0f bytes, the bar is at most %d", s.lots.perRule, mostPerRule))
	}
	if s.reload.worst > mostReload+s.reload.oversleep {
		missed = append(missed, fmt.Sprintf("the worst of %d decisions during reloads takes %.2fms, the bar is at most %s and the %.2fms that the probe overslept",
			s.reload.decisions, milliseconds(s.reload.worst), mostReload, milliseconds(s.reload.oversleep)))
	}
	return missed
}
