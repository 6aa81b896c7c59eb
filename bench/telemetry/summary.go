package main

import (
	"fmt"

	"tidegate.dev/tidegate/bench/internal/report"
	"tidegate.dev/tidegate/bench/internal/rig"
)

// summary is the last line: what is promised of watching.
type summary struct {
	engine    float64 // decisions/s with everything on, times those with nothing on
	offenders float64 // nanoseconds that the lists take of a decision
	rls       float64 // calls per second of CPU time with everything on, times those with nothing on

	tables []report.Table
}

func (s summary) String() string {
	return fmt.Sprintf("bench-telemetry: engine %.2fx offenders %.0fns rls %.2fx", s.engine, s.offenders, s.rls)
}

func (s summary) missed() []string {
	return rig.Missed(
		rig.Bar{Name: "engine", Got: s.engine, Want: 0.95, Unit: "x"},
		rig.Bar{Name: "offenders", Got: s.offenders, Want: 20, AtMost: true, Unit: "ns"},
		rig.Bar{Name: "rls", Got: s.rls, Want: 0.97, Unit: "x"})
}
