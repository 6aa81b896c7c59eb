package main

import "fmt"

// summary is the last line: what the project promises of its engine.
type summary struct {
	take, allow, uniform, batch8, deny2core float64 // times as fast
	bytes                                   float64 // resident, per key
	allocs                                  float64 // per decision
	middleware                              float64 // share of the bare handler's requests/s
}

func (s summary) String() string {
	return fmt.Sprintf("bench-engine: take %.1fx allow %.1fx uniform %.1fx batch8 %.1fx deny2core %.1fx bytes/key %.0f allocs %s middleware %.2fx",
		s.take, s.allow, s.uniform, s.batch8, s.deny2core, s.bytes, s.allocsText(), s.middleware)
}

// allocsText leaves out what the runtime itself allocates once in a while.
func (s summary) allocsText() string {
	if s.allocs < 0.005 {
		return "0"
	}
	return fmt.Sprintf("%.2f", s.allocs)
}

// bar is a promise, and what came out.
type bar struct {
	name      string
	got, want float64
	atMost    bool
	unit      string
}

func (b bar) holds() bool {
	if b.atMost {
		return b.got <= b.want
	}
	return b.got >= b.want
}

func (b bar) word() string {
	if b.atMost {
		return "at most"
	}
	return "at least"
}

// bars are the rows of the design's budget that this rig can see.
func (s summary) bars() []bar {
	return []bar{
		{name: "take", got: s.take, want: 2.0, unit: "x"},
		{name: "allow", got: s.allow, want: 1.6, unit: "x"},
		{name: "uniform", got: s.uniform, want: 2.5, unit: "x"},
		{name: "batch8", got: s.batch8, want: 6, unit: "x"},
		{name: "deny2core", got: s.deny2core, want: 1.8, unit: "x"},
		{name: "bytes/key", got: s.bytes, want: 40, atMost: true},
		{name: "allocs", got: s.allocs, want: 0.005, atMost: true},
		{name: "middleware", got: s.middleware, want: 0.95, unit: "x"},
	}
}

func (s summary) missed() []string {
	var missed []string
	for _, b := range s.bars() {
		if !b.holds() {
			missed = append(missed, fmt.Sprintf("%s is %.3g%s, the bar is %s %.3g%s", b.name, b.got, b.unit, b.word(), b.want, b.unit))
		}
	}
	return missed
}
