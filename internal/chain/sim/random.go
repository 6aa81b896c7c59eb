package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"tidegate.dev/tidegate"
)

// Random returns the Scenario of a seed: 2 to 100 nodes, any network, algorithm, shape and fault.
func Random(seed uint64) Scenario { return random(seed, 5e3, 6e4) }

// random is Random with a load between from and to requests a second.
func random(seed uint64, from, to float64) Scenario {
	r := &dice{rand.New(rand.NewPCG(seed, 0x7469646567617465))}
	s := Scenario{
		Name: fmt.Sprint("seed ", seed), Seed: seed,
		Nodes: int(math.Round(r.log(2, 100))),
		Lasts: r.time(2*time.Second, 5*time.Second),
		Shape: Shape(r.IntN(int(shapes))),
	}
	s.Network = Network{Latency: r.time(0, 9*time.Millisecond), Jitter: r.time(0, time.Millisecond)}
	s.Server.Skew = r.time(-time.Minute, time.Minute)
	if r.one(2) {
		s.Skew = r.time(0, 5*time.Second)
	}
	s.Server.Drift = (r.Float64() - 0.5) / 500
	if r.one(4) {
		s.Server.PerCall = r.time(time.Microsecond, 15*time.Microsecond)
	}
	versions, far, surges, tiny := 1, false, false, false
	switch r.IntN(8) {
	case 0, 1: // far away
		s.Network.Latency = r.time(s.deadline()/2, s.deadline()-3*time.Millisecond)
		s.Shape, far = Even, true
	case 2:
		s.Network.Loss = r.log(0.0001, 0.02)
	case 3, 4: // a rollout
		versions = 2
		if r.one(2) {
			s.Rollout = Span{s.Lasts / 4, s.Lasts * 3 / 4}
		}
	case 5, 6:
		r.faults(&s)
		tiny = r.one(2)
	case 7: // few requests at first, then many
		s.Nodes, s.Shape, surges = min(s.Nodes, 8), Flash, true
	}
	if r.one(6) {
		s.Faults = append(s.Faults, Fault{Kind: Crash, At: r.time(0, s.Lasts), For: r.time(0, time.Second), Nodes: r.some(s.Nodes)})
	}
	offered := r.log(from, to)
	if far { // where a call that waits for another is too late
		s.Subjects = append(s.Subjects, r.hot(offered/4))
	}
	if surges { // where what was taken ahead is used together with a full bucket
		s.Subjects = append(s.Subjects, r.surge(offered/2))
	}
	if tiny { // where a node has less than one request
		s.Subjects = append(s.Subjects, r.tiny(s.Nodes))
	}
	for i := range 1 + r.IntN(2) {
		s.Subjects = append(s.Subjects, r.subject(i, &s, offered/float64(i+1), versions))
	}
	own := &dice{rand.New(rand.NewPCG(seed, 0x6576656e7475616c))}
	own.asEventual(s.Subjects)
	if s.Nodes >= 10 && own.one(2) {
		s.Subjects = append(s.Subjects, own.seldom(s.Nodes))
	}
	return s
}

// dice are what a scenario is drawn with.
type dice struct{ *rand.Rand }

// one returns true once in so many calls, at random.
func (r *dice) one(in int) bool { return r.IntN(in) == 0 }

// log draws a number evenly on a logarithmic scale.
func (r *dice) log(from, to float64) float64 { return from * math.Exp(r.Float64()*math.Log(to/from)) }

// time draws a duration evenly, in whole microseconds.
func (r *dice) time(from, to time.Duration) time.Duration {
	return (from + time.Duration(r.Float64()*float64(to-from))).Truncate(time.Microsecond)
}

// some draws some of so many nodes: at least one, and not all unless there is only one.
func (r *dice) some(nodes int) []int { return r.Perm(nodes)[:1+r.IntN(max(1, nodes-1))] }

// faults adds one or two faults other than crashes, one after the other.
func (r *dice) faults(s *Scenario) {
	at := r.time(300*time.Millisecond, 2*time.Second)
	for range 1 + r.IntN(2) {
		f := Fault{Kind: Kind(r.IntN(int(Crash))), At: at, For: r.time(20*time.Millisecond, 3*time.Second)}
		switch f.Kind {
		case Failover:
			f.Lag = r.time(0, f.At/2)
		case Slow:
			f.Extra = r.time(5*time.Millisecond, 100*time.Millisecond)
		}
		if (f.Kind == Silent || f.Kind == Slow) && r.one(2) {
			f.Nodes = r.some(s.Nodes)
		}
		s.Faults = append(s.Faults, f)
		at = f.At + f.For + settle + r.time(0, time.Second)
	}
	s.Lasts = at + time.Second
}

// hot draws a bucket of few keys with a small burst, at 1.2 to 10 times its rate.
func (r *dice) hot(offered float64) Subject {
	sub := Subject{Name: "hot", Keys: 1 + r.IntN(5), PerSecond: offered}
	events := int64(max(10, offered/r.log(1.2, 10)/float64(sub.Keys)))
	sub.Versions = []*tidegate.Limit{r.limit(sub.Name, tidegate.TokenBucket, events, time.Second, r.log(0.05, 0.5))}
	return sub
}

// tiny draws a limit of about a third as many events as there are nodes, or fewer. Each node makes
// three requests per period and key.
func (r *dice) tiny(nodes int) Subject {
	sub := Subject{Name: "tiny", Keys: 1 + r.IntN(3)}
	algorithm := []tidegate.Algorithm{tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SlidingLog, tidegate.SubWindows}[r.IntN(4)]
	period := r.time(100*time.Millisecond, 500*time.Millisecond).Truncate(10 * time.Millisecond)
	sub.PerSecond = float64(nodes*sub.Keys) * 3 / period.Seconds()
	sub.Versions = []*tidegate.Limit{r.limit(sub.Name, algorithm, 1+r.Int64N(int64(nodes+2)/3), period, 1)}
	return sub
}

// surge draws a bucket of few keys that is on leases, with a small burst, for a load that is
// below its rate at first and far above it later.
func (r *dice) surge(offered float64) Subject {
	sub := Subject{Name: "surge", Keys: 1 + r.IntN(3), PerSecond: offered}
	events := int64(max(10, 0.2*offered/r.log(0.2, 0.9)/float64(sub.Keys)))
	sub.Versions = []*tidegate.Limit{tidegate.MustLimit(tidegate.Spec{
		Name: sub.Name, Events: events, Period: time.Second, Algorithm: tidegate.TokenBucket,
		Burst: int64(float64(events) * r.log(0.2, 0.5)), Terms: leased,
	})}
	return sub
}

// shares are the terms of limits that are split.
var shares = &tidegate.Terms{Handling: tidegate.Handling{Consistency: tidegate.Split}}

// leased are the terms of limits that are leased.
var leased = &tidegate.Terms{Handling: tidegate.Handling{Consistency: tidegate.Leased}}

// drawn are the algorithms that subject draws from, the likelier ones several times.
var drawn = []tidegate.Algorithm{
	tidegate.TokenBucket, tidegate.TokenBucket, tidegate.TokenBucket, tidegate.FixedWindow,
	tidegate.SlidingLog, tidegate.SlidingWindow, tidegate.SubWindows, tidegate.Concurrency,
	tidegate.LeakyBucket, tidegate.Quota,
}

// subject draws a limit in one or more versions, whose load is about so many requests a second.
func (r *dice) subject(i int, s *Scenario, offered float64, versions int) Subject {
	sub := Subject{
		Name: fmt.Sprint("limit", i), Keys: int(math.Round(r.log(1, 300))),
		PerSecond: offered, Cost: 1,
	}
	load := r.log(0.5, 20)
	algorithm := drawn[r.IntN(len(drawn))]
	if r.one(4) {
		sub.Cost = int64(1 + r.IntN(5))
	}
	if versions > 1 && r.one(2) {
		algorithm = tidegate.TokenBucket
	}
	if algorithm == tidegate.Concurrency {
		sub.Cost, sub.Keys = 1, min(sub.Keys, 20)
		sub.PerSecond = min(offered, 5000)
		sub.Hold = r.time(20*time.Millisecond, 500*time.Millisecond)
		slots := int64(max(1, sub.PerSecond*sub.Hold.Seconds()/load/float64(sub.Keys)))
		sub.Versions = []*tidegate.Limit{r.limit(sub.Name, algorithm, min(slots, 1000), r.time(600*time.Millisecond, 2*time.Second), 1)}
		return sub
	}
	period := []time.Duration{100 * time.Millisecond, time.Second, time.Second, 3 * time.Second, time.Minute, time.Hour}[r.IntN(6)]
	events := int64(max(1, offered*float64(sub.Cost)/load/float64(sub.Keys)*period.Seconds()))
	if algorithm == tidegate.SlidingLog {
		events = min(events, 5000)
	}
	if algorithm == tidegate.Quota {
		period = calendars[1+r.IntN(4)]
		events = int64(offered * float64(sub.Cost) / load / float64(sub.Keys) * period.Seconds())
	}
	if period >= time.Minute { // else nothing would ever be used up
		events = max(1, int64(float64(events)/period.Seconds()*r.log(0.5, 5)))
	}
	for v := range versions {
		scale := 1.0
		if v > 0 {
			scale = r.log(0.2, 5)
		}
		sub.Versions = append(sub.Versions, r.limit(sub.Name, algorithm, int64(max(float64(sub.Cost), float64(events)*scale)), period, max(r.log(0.1, 1.5), float64(sub.Cost)/float64(events)/scale)))
	}
	if v := sub.Versions[0]; versions == 1 && tidegate.Split.Suits(algorithm) && r.one(6) {
		sub.Versions[0] = tidegate.MustLimit(tidegate.Spec{
			Name: v.Name, Events: v.Events, Period: v.Period, Algorithm: algorithm, Burst: v.Burst, Calendar: v.Calendar, Terms: shares,
		})
	}
	return sub
}

// limit makes a limit, which is leased in half of the cases that suit. burst is the burst of a bucket as a
// multiple of events. period selects the calendar of a quota.
func (r *dice) limit(name string, a tidegate.Algorithm, events int64, period time.Duration, burst float64) *tidegate.Limit {
	spec := tidegate.Spec{Name: name, Events: events, Period: period, Algorithm: a}
	if tidegate.Leased.Suits(a) && r.one(2) {
		spec = tidegate.Spec{Name: name, Events: events, Period: period, Algorithm: a, Terms: leased}
	}
	switch a {
	case tidegate.TokenBucket:
		spec.Burst = int64(max(1, math.Ceil(float64(events)*burst)))
	case tidegate.LeakyBucket:
		spec.Burst = int64(math.Ceil(float64(events) * burst))
	case tidegate.Quota:
		spec.Period, spec.Calendar = 0, tidegate.Calendar(slices.Index(calendars[:], period))
	case tidegate.SubWindows:
		spec.Parts = 10
	case tidegate.SlidingLog:
		spec.Events = min(events, tidegate.MaxLogEvents)
	}
	return tidegate.MustLimit(spec)
}
