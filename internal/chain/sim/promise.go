package sim

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain/eventual"
	"tidegate.dev/tidegate/internal/chain/node"
	"tidegate.dev/tidegate/internal/chain/split"
)

// How much more than the limit may be admitted, as a share of burst + rate × time.
const (
	farTolerance    = 0.02 // a round trip takes most of the deadline
	outageTolerance = 0.10 // Redis does not answer
)

// deadline returns the deadline of the nodes.
func (s *Scenario) deadline() time.Duration {
	if s.Deadline > 0 {
		return s.Deadline
	}
	return node.DefaultDeadline
}

// tolerance returns how much more may be admitted because of the network, without faults.
func (s *Scenario) tolerance() float64 {
	trip := s.Network.Latency + s.Network.Jitter
	switch {
	case s.Network.Loss > 0: // and what is allowed while connections stand still
		return outageTolerance
	case trip > s.deadline()-1500*time.Microsecond:
		return outageTolerance
	case trip > s.deadline()*2/5:
		return farTolerance
	}
	return 0
}

// check checks the answers and what was admitted against the promises, and returns a text for each
// promise that is broken.
func (l *load) check() (broken []string) {
	s := l.run.s
	if l.errs > 0 {
		broken = append(broken, fmt.Sprintf("%s: %d requests failed, the last one with: %v", l.Name, l.errs, l.failure))
	}
	if most := l.run.slowest(); l.worst > most {
		broken = append(broken, fmt.Sprintf("%s: an answer took %s, want at most %s", l.Name, l.worst, most))
	}
	if text := l.checkAsked(); text != "" {
		broken = append(broken, text)
	}
	if isSlot(tidegate.Check{Limit: l.Versions[0]}) {
		return append(broken, l.checkSlots()...)
	}
	if split.Is(l.Versions[0]) {
		return append(broken, l.checkShares()...)
	}
	if l.isRegional() {
		return append(broken, l.checkRegions()...)
	}
	if eventual.Is(l.Versions[0]) {
		return append(broken, l.checkEventual()...)
	}
	remembered, stretches := s.remembered(), l.stretches()
	for key, log := range l.logs {
		slices.SortFunc(log, func(a, b admission) int { return cmp.Compare(a.at, b.at) })
		for _, st := range remembered {
			if text := l.checkStretch(log, st, true); text != "" {
				broken = append(broken, fmt.Sprintf("%s, %s, admitted by Redis alone: %s", l.Name, l.keys[key], text))
			}
		}
		for _, st := range stretches {
			if l.fails() == tidegate.FailOpen && st.share > 0 {
				continue // everything is admitted, as the rule says
			}
			if text := l.checkStretch(log, st, false); text != "" {
				broken = append(broken, fmt.Sprintf("%s, %s: %s", l.Name, l.keys[key], text))
			}
		}
	}
	return broken
}

// checkStretch replays the admissions of a key within a stretch of time; with byRedis only those by
// Redis. It returns what is wrong, or "" if nothing is.
func (l *load) checkStretch(log []admission, st stretch, byRedis bool) string {
	r := l.run
	from, to := r.clock(st.From), r.clock(st.To)
	law := newLaw(l.Versions)
	allowed := l.allowed(log, st, min(st.To, r.s.Lasts)-st.From)
	if !byRedis && l.underUsed(st) && len(log) < int(usedAtLeast*rate(l.Versions[0])*r.s.Lasts.Seconds()) {
		return fmt.Sprintf("%d admitted, want %.0f %% of the limit", len(log), 100*usedAtLeast)
	}
	worst, at, n := 0.0, int64(0), 0
	for _, a := range log {
		if a.at < from || a.at >= to || byRedis && a.local {
			continue
		}
		n++
		if over := law.admit(a.at+r.start.UnixNano(), float64(l.Cost)); over > worst {
			worst, at = over, a.at
		}
	}
	if sum := l.longRun(float64(n)*float64(l.Cost), time.Duration(to-from)); sum > worst {
		worst, at = sum, to
	}
	if worst <= allowed {
		return ""
	}
	return fmt.Sprintf("%.4g more than the limit at %s, want at most %.4g (%s, %d admitted)", worst, time.Duration(at-r.clock(0)).Round(time.Microsecond), allowed, st.what, n)
}

// allowed returns by how many events a key may exceed its limit in a stretch of time.
func (l *load) allowed(log []admission, st stretch, lasts time.Duration) (sum float64) {
	var burst, pace float64
	for _, v := range l.Versions {
		burst, pace = max(burst, float64(v.Capacity())), max(pace, rate(v))
	}
	if st.share == 0 && st.extra == 0 {
		return 0
	}
	sum = st.share*(burst+pace*max(lasts, 0).Seconds()) + st.extra*burst + st.alone*pace
	sum += max(0, float64(l.run.s.Nodes)*float64(l.Cost)-burst) // no share is less than a request
	sum += st.still.nodes*burst + st.still.seconds*pace
	if s := l.run.s; s.Skew > 0 || s.Server.Skew != 0 {
		if a := l.Versions[0].Algorithm; a != tidegate.TokenBucket && a != tidegate.SlidingLog {
			sum += burst // windows of nodes begin at other times
		}
	}
	if st.lag != (Span{}) {
		from, to := l.run.clock(st.lag.From), l.run.clock(st.lag.To)
		for _, a := range log {
			if from <= a.at && a.at < to {
				sum += float64(l.Cost)
			}
		}
	}
	return sum
}

// checkSlots checks the slots in use against the limit. While Redis is away each node has a share, and
// slots from before may still be held.
func (l *load) checkSlots() (broken []string) {
	most := 0
	for _, v := range l.Versions {
		most = max(most, int(v.Events))
	}
	most += l.run.sharesOf(most)
	for key, n := range l.most {
		if n > most {
			broken = append(broken, fmt.Sprintf("%s, %s: %d slots in use, want at most %d", l.Name, l.keys[key], n, most))
		}
	}
	return broken
}

// sharesOf returns how many slots, of a limit with so many, instances may hold as shares of their own
// because they had to do without Redis. The share of an instance that had not heard of the others is all
// slots.
func (r *run) sharesOf(slots int) (sum int) {
	far := r.s.Network.Loss == 0 && r.s.tolerance() > 0
	for _, l := range r.links {
		alone := !l.known && len(l.stood) > 0
		cut := far || len(l.stood) > 0
		for _, f := range r.s.Faults {
			if f.Kind != Crash && f.hits(l.node) {
				cut = true
				alone = alone || !l.known && f.At-hearing < l.born && l.born < f.At+f.For+settle
			}
		}
		switch {
		case alone:
			sum += slots
		case cut:
			sum += max(1, slots/r.s.Nodes)
		}
	}
	return sum
}

// longRun returns by how much events exceed what all windows of a stretch of time admit, the first and the
// last of which may be cut short. The law of a window checks each window by itself, and would not notice
// that all exceed the limit by a little.
func (l *load) longRun(events float64, lasts time.Duration) float64 {
	v := l.Versions[0]
	if v.Algorithm == tidegate.TokenBucket || v.Algorithm == tidegate.LeakyBucket {
		return 0 // their law adds up what is over
	}
	most := 0.0
	for _, v := range l.Versions {
		most = max(most, float64(v.Events))
	}
	lasts = max(0, min(lasts, l.run.s.Lasts+time.Second)) // the last stretch has no end, and some end before they begin
	return events - most*(2+math.Floor(lasts.Seconds()/period(v).Seconds()))
}
