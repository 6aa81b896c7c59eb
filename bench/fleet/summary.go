package main

import (
	"fmt"

	"tidegate.dev/tidegate/bench/internal/rig"
)

// summary is the last line: what is promised of leases, and of limits that are eventual.
type summary struct {
	fewer         float64 // times fewer calls than strict, which shares calls as well
	use           float64 // of the limit, where nothing is the matter: the least
	nonconforming int64   // in all rounds

	over     float64 // share of an eventual limit that was admitted above it, by three instances
	overMany float64 // by eight
	refused  int64   // below it
	miscount int64   // events that Redis counted otherwise than they were admitted
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
	return fmt.Sprintf("bench-fleet: leased calls 1/%.0f use %.1f%% nonconforming %d eventual %+.1f%%", s.fewer, 100*s.use, s.nonconforming, 100*s.over)
}

func (s summary) missed() []string {
	return rig.Missed(
		rig.Bar{Name: "calls", Got: s.fewer, Want: 100, Unit: "x"},
		rig.Bar{Name: "use", Got: 100 * s.use, Want: 97, Unit: "%"},
		rig.Bar{Name: "nonconforming", Got: float64(s.nonconforming), Want: 0, AtMost: true},
		rig.Bar{Name: "eventual, 3 instances", Got: 100 * s.over, Want: 7, Unit: "%", AtMost: true},
		rig.Bar{Name: "eventual, 8 instances", Got: 100 * s.overMany, Want: 9, Unit: "%", AtMost: true},
		rig.Bar{Name: "refused below an eventual limit", Got: float64(s.refused), Want: 0, AtMost: true},
		rig.Bar{Name: "counted otherwise than admitted", Got: float64(s.miscount), Want: 0, AtMost: true})
}
