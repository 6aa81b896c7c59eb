package main

import (
	"fmt"

	"tidegate.dev/tidegate/bench/internal/rig"
)

// summary is the last line: what is promised of leases.
type summary struct {
	fewer         float64 // times fewer calls than strict, which shares calls as well
	use           float64 // of the limit, where nothing is the matter: the least
	nonconforming int64   // in all rounds
}

// undisturbed reports whether nothing keeps a round from using the whole limit.
func (r *result) undisturbed() bool { return r.leased && !r.kill && r.freeze == 0 }

func summarize(all []result) summary {
	s := summary{use: 1}
	var asked, calls, strict float64
	for i := range all {
		r := &all[i]
		if !r.leased {
			strict = float64(r.calls) / float64(r.asked)
			continue
		}
		s.nonconforming += r.nonconforming
		if r.undisturbed() {
			asked, calls = asked+float64(r.asked), calls+float64(r.calls)
			s.use = min(s.use, r.use)
		}
	}
	s.fewer = strict * asked / max(calls, 1)
	return s
}

func (s summary) String() string {
	return fmt.Sprintf("bench-fleet: leased calls 1/%.0f use %.1f%% nonconforming %d", s.fewer, 100*s.use, s.nonconforming)
}

func (s summary) missed() []string {
	return rig.Missed(
		rig.Bar{Name: "calls", Got: s.fewer, Want: 100, Unit: "x"},
		rig.Bar{Name: "use", Got: 100 * s.use, Want: 97, Unit: "%"},
		rig.Bar{Name: "nonconforming", Got: float64(s.nonconforming), Want: 0, AtMost: true})
}
