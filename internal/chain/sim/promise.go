package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain/node"
)

// How much more than the limit may be admitted, as a share of burst + rate × time.
const (
	farTolerance    = 0.02 // a round trip takes most of the deadline
	outageTolerance = 0.10 // Redis does not answer
)

// deadline is when the nodes answer at the latest.
func (s *Scenario) deadline() time.Duration {
	if s.Deadline > 0 {
		return s.Deadline
	}
	return node.DefaultDeadline
}

// tolerance is how much more may be admitted because of the network, if nothing is the matter.
func (s *Scenario) tolerance() float64 {
	trip := s.Network.Latency + s.Network.Jitter
	switch {
	case s.Network.Loss > 0: // connections stand still one by one: those of k of N nodes at a time
		return outageTolerance + 1
	case trip > s.deadline()-1500*time.Microsecond:
		return outageTolerance
	case trip > s.deadline()*2/5:
		return farTolerance
	}
	return 0
}

// stretch is a part of a run, and how much may be admitted in any part of it beyond the exact
// limit.
type stretch struct {
	Span
	since time.Duration // all was well from then on; not after From
	share float64       // of burst + rate × its length
	extra float64       // bursts
	lag   Span          // admissions in it may have been forgotten
	what  string
}

// stretches are the parts of a run: without faults, and from the beginning of each fault on.
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

// disturbed is the part of a run from the beginning of a fault until all is well.
func (s *Scenario) disturbed(f Fault, over time.Duration) stretch {
	d := stretch{Span: Span{f.At, over}, share: outageTolerance, what: f.String()}
	if k := len(f.Nodes); k > 0 {
		d.share += float64(k) / float64(s.Nodes)
	}
	for _, c := range s.Faults { // who starts while Redis is away knows neither the others nor what was used
		if c.Kind == Crash && c.At < over && f.At < c.At+c.For {
			d.extra += 2 * float64(max(1, len(c.Nodes)))
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

// check holds what was admitted to the promises. It returns what was broken.
func (l *load) check() (broken []string) {
	s := l.run.s
	if l.errs > 0 {
		broken = append(broken, fmt.Sprintf("%s: %d requests failed, the last one with: %v", l.Name, l.errs, l.failure))
	}
	if most := s.slowest(); l.worst > most {
		broken = append(broken, fmt.Sprintf("%s: an answer took %s, want at most %s", l.Name, l.worst, most))
	}
	if text := l.checkAsked(); text != "" {
		broken = append(broken, text)
	}
	if isSlot(tidegate.Check{Limit: l.Versions[0]}) {
		return append(broken, l.checkSlots()...)
	}
	if l.Versions[0].Algorithm == tidegate.Quota {
		return broken // a calendar is not replayed
	}
	for key, log := range l.logs {
		slices.SortFunc(log, func(a, b admission) int { return cmp.Compare(a.at, b.at) })
		for _, st := range s.remembered() {
			if text := l.checkStretch(log, st, true); text != "" {
				broken = append(broken, fmt.Sprintf("%s, %s, admitted by Redis alone: %s", l.Name, l.keys[key], text))
			}
		}
		for _, st := range s.stretches() {
			if l.seenBefore(st) { // nobody is refilled by an outage
				st.From = st.since
			}
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

// aloneAtMost is which share of the decisions nodes make themselves while Redis answers within
// the deadline: until they know how far away it is.
const aloneAtMost = 0.03

// checkAsked holds nodes to asking a Redis that answers within the deadline.
func (l *load) checkAsked() string {
	s := l.run.s
	if len(s.Faults) > 0 || s.tolerance() > farTolerance || s.Server.PerCall > 0 {
		return ""
	}
	var offered int64
	for _, p := range l.points {
		offered += p.Offered
	}
	if most := aloneAtMost*float64(offered) + 10; float64(l.alone) > most {
		return fmt.Sprintf("%s: nodes decided about %d of %d requests themselves although Redis answers in time, want at most %.0f", l.Name, l.alone, offered, most)
	}
	return ""
}

// queued is how many calls may be out at a node before others wait there for their turn.
const queued = 32

// slowest is how long an answer takes at most. One that is only queued behind others, at a
// server that answers, may take longer than the deadline.
func (s *Scenario) slowest() time.Duration {
	calls := 0
	for _, sub := range s.Subjects {
		if calls += sub.Keys; isSlot(tidegate.Check{Limit: sub.Versions[0]}) { // asked for one by one
			calls += queued
		}
	}
	slow := slices.ContainsFunc(s.Faults, func(f Fault) bool { return f.Kind == Slow })
	if s.Server.PerCall > 0 || s.tolerance() > 0 || slow || calls >= queued {
		return s.deadline() + 500*time.Millisecond
	}
	return s.deadline()
}

// seenBefore reports whether every node that gets requests for a key during a fault has got some
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

// remembered are the parts of a run in which Redis forgets nothing: in these, what it admits
// itself is never above the limit, whatever else is the matter.
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

// checkStretch replays the admissions of a key from the beginning of a stretch of time; only
// those by Redis, if so.
func (l *load) checkStretch(log []admission, st stretch, byRedis bool) string {
	r := l.run
	from := r.server.clockAt(r.start.Add(st.From)).Sub(r.start).Nanoseconds()
	to := r.server.clockAt(r.start.Add(st.To)).Sub(r.start).Nanoseconds()
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
	if worst <= allowed {
		return ""
	}
	return fmt.Sprintf("%.4g more than the limit at %s, want at most %.4g (%s, %d admitted)", worst, time.Duration(at).Round(time.Microsecond), allowed, st.what, n)
}

// usedAtLeast is which share of a limit is used by whoever asks for twice as much.
const usedAtLeast = 0.9

// underUsed reports whether a stretch is a whole run in which the limit must be used up, all the time.
func (l *load) underUsed(st stretch) bool {
	s, v := l.run.s, l.Versions[0]
	if len(s.Faults) > 0 || s.tolerance() > farTolerance || s.Shape != Even || len(l.Versions) > 1 || l.Cost > 1 || st.To < s.Lasts {
		return false
	}
	if v.Algorithm != tidegate.TokenBucket && v.Algorithm != tidegate.SlidingLog {
		return false // windows end somewhere
	}
	each := l.perSecond / float64(l.Keys)
	// What refills while an answer is under way must fit.
	trip := (s.Network.Latency + s.Network.Jitter).Seconds() + 0.05
	return s.Lasts >= 4*v.Period && each >= 2*rate(v) && each >= 50 && float64(v.Capacity()) >= 5+4*rate(v)*trip
}

// allowed is by how much a key may be above its limit in a stretch of time.
func (l *load) allowed(log []admission, st stretch, lasts time.Duration) (sum float64) {
	var burst, pace float64
	for _, v := range l.Versions {
		burst, pace = max(burst, float64(v.Capacity())), max(pace, rate(v))
	}
	if st.share == 0 && st.extra == 0 {
		return 0
	}
	sum = st.share*(burst+pace*max(lasts, 0).Seconds()) + st.extra*burst
	sum += float64(l.run.s.Nodes) * float64(l.Cost) // no share is nothing
	if s := l.run.s; s.Skew > 0 || s.Server.Skew != 0 {
		if a := l.Versions[0].Algorithm; a != tidegate.TokenBucket && a != tidegate.SlidingLog {
			sum += burst // windows of nodes begin at other times
		}
	}
	for _, a := range log {
		if st.lag.has(time.Duration(a.at)) {
			sum += float64(l.Cost)
		}
	}
	return sum
}

// checkSlots holds the slots in use to the limit. While Redis is away each node has a share, and
// leases of before may still be held.
func (l *load) checkSlots() (broken []string) {
	most := 0
	for _, v := range l.Versions {
		most = max(most, int(v.Events))
	}
	for _, f := range l.run.s.Faults {
		if f.Kind != Crash {
			most += max(most, l.run.s.Nodes)
			break
		}
	}
	if l.run.s.tolerance() > 0 {
		most += max(most, l.run.s.Nodes)
	}
	for key, n := range l.most {
		if n > most {
			broken = append(broken, fmt.Sprintf("%s, %s: %d slots in use, want at most %d", l.Name, l.keys[key], n, most))
		}
	}
	return broken
}
