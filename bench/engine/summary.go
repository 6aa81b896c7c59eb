package main

import (
	"fmt"

	"tidegate.dev/tidegate/bench/internal/rig"
)

// summary is the last line: what the project promises of its engine.
type summary struct {
	take, allow, uniform, batch8 float64 // times as fast
	windows                      float64 // times as fast: the slower one of fixed_window and sliding_window
	slowest                      float64 // times as fast: of all algorithms, and the default at 60 and 1,000 events
	deny2core, admit2core        float64 // two cores against one; the slowest algorithm
	limits10k                    float64 // the time of one limit
	limits16                     float64 // ns for each of 16 limits at once
	refused3                     float64 // the time of what is admitted, for three limits
	bytes                        float64 // resident, per key
	allocs                       float64 // per decision
	middleware                   float64 // share of the bare handler's requests/s
}

func (s summary) String() string {
	return fmt.Sprintf("bench-engine: take %.1fx allow %.1fx windows %.1fx slowest %.1fx uniform %.1fx batch8 %.1fx deny2core %.1fx admit2core %.1fx limits10k %.1fx limits16 %.0fns refused3 %.1fx bytes/key %.0f allocs %s middleware %.2fx",
		s.take, s.allow, s.windows, s.slowest, s.uniform, s.batch8, s.deny2core, s.admit2core, s.limits10k, s.limits16, s.refused3, s.bytes, rig.Allocs(s.allocs), s.middleware)
}

// bars returns the rows of the design's budget that this rig can see.
func (s summary) bars() []rig.Bar {
	return []rig.Bar{
		{Name: "take", Got: s.take, Want: 2.0, Unit: "x"},
		{Name: "allow", Got: s.allow, Want: 1.6, Unit: "x"},
		{Name: "windows", Got: s.windows, Want: 1.3, Unit: "x"},
		{Name: "uniform", Got: s.uniform, Want: 2.5, Unit: "x"},
		{Name: "batch8", Got: s.batch8, Want: 6, Unit: "x"},
		{Name: "deny2core", Got: s.deny2core, Want: 1.8, Unit: "x"},
		{Name: "limits16", Got: s.limits16, Want: 70, AtMost: true, Unit: "ns"},
		{Name: "refused3", Got: s.refused3, Want: 1.3, AtMost: true, Unit: "x"},
		{Name: "bytes/key", Got: s.bytes, Want: 40, AtMost: true},
		{Name: "allocs", Got: s.allocs, Want: rig.FewestAllocs, AtMost: true},
		{Name: "middleware", Got: s.middleware, Want: 0.95, Unit: "x"},
	}
}

// aims returns what the budget is to become.
func (s summary) aims() []rig.Bar {
	return []rig.Bar{
		{Name: "slowest", Got: s.slowest, Want: 1.8, Unit: "x"},
		{Name: "admit2core", Got: s.admit2core, Want: 0.8, Unit: "x"},
		{Name: "limits10k", Got: s.limits10k, Want: 2, AtMost: true, Unit: "x"},
	}
}

func (s summary) missed() []string { return rig.Missed(s.bars()...) }
