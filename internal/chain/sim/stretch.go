package sim

import (
	"cmp"
	"slices"
	"time"
)

// stretch is a part of a run, and how much may be admitted in any part of it beyond the exact
// limit.
type stretch struct {
	Span
	since time.Duration // there were no faults from then until From; not after From
	share float64       // allowed beyond the limit, as a share of burst + rate × length
	extra float64       // allowed beyond the limit, in bursts
	alone float64       // for how many seconds, summed over instances, one that knew of no other had the whole limit
	still stall         // stalled connections
	lag   Span          // when admissions were made that Redis may have forgotten
	what  string        // for messages
}

// stretches returns the parts of a run: those without faults, and one for each fault, from its beginning
// until all is well.
func (s *Scenario) stretches() (all []stretch) {
	faults := slices.Clone(s.Faults)
	slices.SortFunc(faults, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	calm := time.Duration(0)
	const end = time.Hour
	for _, f := range faults {
		if f.Kind == Crash {
			continue // what Redis knows stays
		}
		if f.At > calm {
			all = append(all, stretch{Span: Span{calm, f.At - f.Lag}, since: calm, share: s.tolerance(), what: "before " + f.String()})
		}
		over := f.At + f.For + settle
		d := s.disturbed(f, over)
		if d.since = calm; calm > f.At || f.Kind == Empty || f.Kind == Failover {
			d.since = f.At
		}
		all = append(all, d)
		calm = max(calm, over)
	}
	return append(all, stretch{Span: Span{calm, end}, since: calm, share: s.tolerance(), what: "without faults"})
}

// disturbed returns the part of a run from the beginning of a fault until all is well, at over.
func (s *Scenario) disturbed(f Fault, over time.Duration) stretch {
	d := stretch{Span: Span{f.At, over}, share: outageTolerance, what: f.String()}
	if k := len(f.Nodes); k > 0 {
		d.share += float64(k) / float64(s.Nodes)
	}
	for _, c := range s.Faults { // who starts while Redis is away knows neither the others nor what was used
		if starts := c.At + c.For; c.Kind == Crash && f.At-hearing < starts && starts < over {
			count := float64(s.hit(c))
			d.extra += count
			d.alone += count * max(0, f.At+f.For+recovering-starts).Seconds()
		}
	}
	switch f.Kind {
	case Empty:
		d.extra++
	case Failover:
		d.lag = Span{f.At - f.Lag - time.Second, f.At}
	}
	return d
}

// hearing is how long an instance needs to hear of the others. recovering is how long it takes until
// an instance asks Redis again after an outage.
const (
	hearing    = 50 * time.Millisecond
	recovering = time.Second
)

// hit returns how many nodes a fault affects.
func (s *Scenario) hit(f Fault) int {
	if len(f.Nodes) > 0 {
		return len(f.Nodes)
	}
	return s.Nodes
}

// stretches returns those of the scenario, each begun as far back as nodes know what was used.
func (l *load) stretches() []stretch {
	all := l.run.s.stretches()
	for i := range all {
		st := &all[i]
		if l.seenBefore(*st) { // nobody is refilled by an outage
			st.From = st.since
		}
		st.still = l.run.stalled(st.Span)
	}
	return all
}

// seenBefore reports whether every node that gets requests for a key during a fault also got some
// just before it, so that it knows what was used.
func (l *load) seenBefore(st stretch) bool {
	s := l.run.s
	if st.since >= st.From || s.Shape > One {
		return false
	}
	each := l.perSecond / float64(l.Keys)
	if s.Shape == Even {
		each /= float64(s.Nodes)
	}
	// And often enough to know what others have used.
	return each*(st.From-st.since).Seconds() >= 20 && each >= 4*rate(l.Versions[0])/float64(l.Versions[0].Capacity())
}

// remembered returns the parts of a run in which Redis forgets nothing: in these, what it admits
// itself is never above the limit, whatever other faults there are.
func (s *Scenario) remembered() (all []stretch) {
	from := time.Duration(0)
	for _, f := range s.Faults {
		if f.Kind == Empty || f.Kind == Failover {
			all = append(all, stretch{Span: Span{from, f.At}, what: "until Redis forgets"})
			from = f.At
		}
	}
	return append(all, stretch{Span: Span{from, time.Hour}, what: "whatever happens"})
}
