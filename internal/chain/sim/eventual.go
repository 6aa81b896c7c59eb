package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain/eventual"
)

// checkEventual checks an eventual limit against what docs/consistency.md promises. Without faults,
// every instance knows what all had admitted a few intervals ago: the limit is exceeded by no more than
// what was admitted since. Otherwise each instance has its share.
func (l *load) checkEventual() (broken []string) {
	r, s := l.run, l.run.s
	trip := s.Network.Latency + s.Network.Jitter
	unknown := 3*eventual.DefaultInterval + 3*trip + tick
	// Windows begin by clocks that were compared a few seconds ago, over half a round trip.
	clocks := trip + time.Duration(0.002*float64(10*time.Second))
	calm := len(s.Faults) == 0 && s.tolerance() == 0 && s.Server.PerCall == 0
	for key, log := range l.logs {
		slices.SortFunc(log, func(a, b admission) int { return cmp.Compare(a.at, b.at) })
		law, first := newLaw(l.Versions), 0
		fixed := float64(l.Cost) * float64(most(log, clocks))
		if !calm {
			fixed += l.sharesApart() + float64(l.Cost)*float64(most(log, time.Second)+s.Nodes)
		}
		for i, a := range log {
			over := law.admit(a.at+r.start.UnixNano(), float64(l.Cost))
			for log[first].at < a.at-unknown.Nanoseconds() {
				first++
			}
			if allowed := fixed + float64(l.Cost)*float64(i+1-first); over > allowed {
				broken = append(broken, fmt.Sprintf("%s, %s: %.4g more than the limit at %s, want at most %.4g, which instances could not know of (%d admitted)",
					l.Name, l.keys[key], over, time.Duration(a.at-r.clock(0)).Round(time.Microsecond), allowed, len(log)))
				break
			}
		}
	}
	return broken
}

// sharesApart returns how many events instances that do not hear of each other may admit above the
// limit: once the limit for the shares of those that are cut off. It adds one limit for each instance
// that starts, which knows neither the others nor what was used, and for each server that comes back
// without its data.
func (l *load) sharesApart() float64 {
	limits := 1.0
	for _, f := range l.run.s.Faults {
		switch f.Kind {
		case Crash:
			limits += float64(len(l.run.hit(f)))
		case Empty, Failover:
			limits++
		}
	}
	return limits * float64(l.Versions[0].Capacity())
}

// most returns the largest number of admissions in any stretch of time as long as within. log is
// sorted.
func most(log []admission, within time.Duration) (n int) {
	first := 0
	for i, a := range log {
		for log[first].at < a.at-within.Nanoseconds() {
			first++
		}
		n = max(n, i+1-first)
	}
	return n
}

// eventually are the terms of limits that are eventual.
var eventually = &tidegate.Terms{Handling: tidegate.Handling{Consistency: tidegate.Eventual}}

// seldom draws a window limit for which each node gets about one request per window, and all nodes
// together several times what it admits: no node can tell from its own requests what others admit.
func (r *dice) seldom(nodes int) Subject {
	algorithms := []tidegate.Algorithm{tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SubWindows}
	period := r.time(800*time.Millisecond, 1200*time.Millisecond).Truncate(10 * time.Millisecond)
	perSecond := float64(nodes) / r.time(time.Second, 1500*time.Millisecond).Seconds()
	events := int64(max(1, perSecond*period.Seconds()/r.log(3, 8)))
	return Subject{Name: "seldom", PerSecond: perSecond, Versions: []*tidegate.Limit{tidegate.MustLimit(tidegate.Spec{
		Name: "seldom", Events: events, Period: period, Algorithm: algorithms[r.IntN(len(algorithms))], Terms: eventually,
	})}}
}

// asEventual makes some limits eventual, of those that have one version and are strict. It draws from
// dice of its own, so that the rest of a scenario is the same without it.
func (r *dice) asEventual(all []Subject) {
	for i := range all {
		sub := &all[i]
		v := sub.Versions[0]
		if len(sub.Versions) > 1 || v.Terms != nil || !tidegate.Eventual.Suits(v.Algorithm) || !r.one(2) {
			continue
		}
		sub.Versions = []*tidegate.Limit{tidegate.MustLimit(tidegate.Spec{
			Name: v.Name, Events: v.Events, Period: v.Period, Algorithm: v.Algorithm, Parts: v.Parts, Calendar: v.Calendar, Terms: eventually,
		})}
	}
}
