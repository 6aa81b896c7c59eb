package main

import (
	"fmt"

	"tidegate.dev/tidegate/bench/internal/rig"
)

// summary is the last line: what the project promises of its engine.
type summary struct {
	take, allow, uniform, batch8, deny2core float64 // times as fast
	bytes                                   float64 // resident, per key
	allocs                                  float64 // per decision
	middleware                              float64 // share of the bare handler's requests/s
	fixed, sliding, sub, log                float64 // times as fast, on one hot key, by the other algorithms
}

func (s summary) String() string {
	return fmt.Sprintf("bench-engine: take %.1fx allow %.1fx uniform %.1fx batch8 %.1fx deny2core %.1fx bytes/key %.0f allocs %s middleware %.2fx fixed %.1fx sliding %.1fx sub %.1fx log %.1fx",
		s.take, s.allow, s.uniform, s.batch8, s.deny2core, s.bytes, rig.Allocs(s.allocs), s.middleware,
		s.fixed, s.sliding, s.sub, s.log)
}

// bars are the rows of the design's budget that this rig can see. sub and log are told
// without one: a state in a record takes twice as long as one in a slot.
func (s summary) bars() []rig.Bar {
	return []rig.Bar{
		{Name: "take", Got: s.take, Want: 2.0, Unit: "x"},
		{Name: "allow", Got: s.allow, Want: 1.6, Unit: "x"},
		{Name: "uniform", Got: s.uniform, Want: 2.5, Unit: "x"},
		{Name: "batch8", Got: s.batch8, Want: 6, Unit: "x"},
		{Name: "deny2core", Got: s.deny2core, Want: 1.8, Unit: "x"},
		{Name: "bytes/key", Got: s.bytes, Want: 40, AtMost: true},
		{Name: "allocs", Got: s.allocs, Want: rig.FewestAllocs, AtMost: true},
		{Name: "middleware", Got: s.middleware, Want: 0.95, Unit: "x"},
		{Name: "fixed", Got: s.fixed, Want: 1.3, Unit: "x"},
		{Name: "sliding", Got: s.sliding, Want: 1.3, Unit: "x"},
	}
}

func (s summary) missed() []string { return rig.Missed(s.bars()...) }
