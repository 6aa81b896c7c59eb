package sim

import (
	"fmt"
	"slices"
	"time"

	"tidegate.dev/tidegate"
)

// aloneAtMost is the largest share of all decisions that nodes may make themselves while Redis
// answers within the deadline: they do so until they know how far away it is.
const aloneAtMost = 0.03

// checkAsked checks that nodes ask a Redis that answers within the deadline. It returns what is wrong,
// or "" if nothing is.
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

const (
	queued        = 32                     // calls in flight at a node from which on others queue there
	mostQueueing  = 500 * time.Millisecond // how long they queue beyond the deadline, at a busy server
	mostDeadlines = 6                      // how many deadlines they queue at a server that takes no time itself
)

// slowest returns how long an answer may take at most. One that is only queued behind others, at a
// server that answers, may take longer than the deadline.
func (r *run) slowest() time.Duration {
	s := r.s
	calls := 0
	for _, sub := range s.Subjects {
		calls += sub.Keys // the next ones, which have not left yet
	}
	most := 0
	for _, l := range r.links {
		most = max(most, l.most)
	}
	slow := slices.ContainsFunc(s.Faults, func(f Fault) bool { return f.Kind == Slow })
	switch {
	case s.Server.PerCall > 0 || slow:
		return s.deadline() + mostQueueing
	case s.tolerance() > 0 || calls+most >= queued:
		return mostDeadlines * s.deadline()
	}
	return s.deadline()
}

// usedAtLeast is the least share of a limit that must be admitted when twice the limit is asked for.
const usedAtLeast = 0.9

// underUsed reports whether a stretch is a whole run in which the limit must be used up, all the time:
// then too few admissions break a promise.
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
