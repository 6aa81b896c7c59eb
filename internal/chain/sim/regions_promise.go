package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain/eventual"
	"tidegate.dev/tidegate/internal/chain/region"
)

// isRegional reports whether several regions share the limit.
func (l *load) isRegional() bool {
	v := l.Versions[0]
	return len(l.run.places) > 1 && eventual.Is(v) && v.Terms.Handling.OnPartition != tidegate.RegionsApart
}

// ownLag returns how long it takes at most from an admission until all nodes of the same region decide
// by it, if there are no faults.
func (s *Scenario) ownLag() time.Duration {
	return 3*eventual.DefaultInterval + 3*(s.Network.Latency+s.Network.Jitter) + tick
}

// regionLag returns what docs/consistency.md calls Λ: how long it takes from an admission in one region
// until nodes of another decide by it, if there are no faults.
func (s *Scenario) regionLag() time.Duration {
	trip := s.Network.Latency + s.Network.Jitter
	return 3*eventual.DefaultInterval + 4*trip + region.Interval + 2*s.Regions.Latency + tick
}

// After how long regions know of each other again.
const (
	healed   = 2*time.Second + 1250*time.Millisecond // after a cut: the call under way ends, and the next one begins
	replaced = 2*time.Second + 700*time.Millisecond  // after a crash of the syncers: the place of the old one is free
)

// restored returns how long it takes until a store that has lost everything was told all by the others.
func (s *Scenario) restored() time.Duration { return 2*region.Interval + 3*s.Regions.Latency + tick }

// horizon returns the time up to which a node of region in surely knows, at time at, what was admitted in
// region of.
func (s *Scenario) horizon(of, in int, at time.Duration) time.Duration {
	lag := s.regionLag()
	known := at - lag
	if of == in {
		known = at - s.ownLag()
	}
	for again := true; again; {
		again = false
		hide := func(from, to time.Duration) {
			if from < known && known < to {
				known, again = from, true
			}
		}
		for _, w := range s.Regions.Wipes {
			if w.Region == in {
				hide(-time.Hour, w.At+s.restored())
			}
		}
		if of == in {
			continue
		}
		for _, c := range s.Regions.Cuts {
			if c.Region == of || c.Region == in {
				hide(c.From-lag, c.To+healed)
			}
		}
		for _, c := range s.Regions.Crashes {
			hide(c-lag, c+replaced)
		}
	}
	// What a wiped store has lost of its own comes back when the others tell it, and not before.
	if of == in {
		for _, w := range s.Regions.Wipes {
			for _, c := range s.Regions.Cuts {
				if w.Region == in && w.At < c.To+healed && at >= w.At && at < c.To+healed+lag && w.At >= c.From-lag {
					known = -time.Hour
				}
			}
		}
	}
	return known
}

// checkRegions holds a limit of several regions to what docs/consistency.md says of it: it is exceeded by
// no more than what nodes could not know of. While a region is cut off, shares add up to the limit.
func (l *load) checkRegions() (broken []string) {
	r, s := l.run, l.run.s
	for key, log := range l.logs {
		slices.SortFunc(log, func(a, b admission) int { return cmp.Compare(a.at, b.at) })
		law := newLaw(l.Versions)
		// Instances begin the next window a moment sooner or later, as they have compared their clocks.
		clocks, early := float64(most(log, 2*s.Network.Latency+20*time.Millisecond)), 0.0
		fixed := float64(s.Nodes) + clocks + l.neverTold(log)
		times := make([][]time.Duration, len(r.places))
		began := r.clock(0)
		for i, a := range log {
			at := time.Duration(a.at - began)
			times[a.place] = append(times[a.place], at)
			over := law.admit(a.at+r.start.UnixNano(), float64(l.Cost))
			if over <= fixed {
				early = 0
				continue
			}
			allowed := fixed + l.unknown(times, a.place, at)
			if early++; over <= allowed {
				early = 0
			}
			if early > clocks {
				broken = append(broken, fmt.Sprintf("%s, %s: %.4g more than the limit at %s in region %d, want at most %.4g, which it could not know of (%d admitted)",
					l.Name, l.keys[key], over, at.Round(time.Microsecond), a.place, allowed, len(log)))
				break
			}
			if most, held := l.sharesHold(log[:i+1], at); held && over > fixed+most {
				broken = append(broken, fmt.Sprintf("%s, %s: %.4g more than the limit at %s in region %d although regions have shares, want at most %.4g",
					l.Name, l.keys[key], over, at.Round(time.Microsecond), a.place, fixed+most))
				break
			}
		}
	}
	return broken
}

// unknown returns how many events were admitted that a node of region place may not know of at time at.
// times are those of all admissions so far, by region.
func (l *load) unknown(times [][]time.Duration, place int, at time.Duration) (sum float64) {
	for of, all := range times {
		known := l.run.s.horizon(of, place, at)
		first, _ := slices.BinarySearch(all, known)
		sum += float64(l.Cost) * float64(len(all)-first)
	}
	return sum
}

// neverTold returns how many events were admitted just before a Redis lost them, so that other regions may
// never be told of them.
func (l *load) neverTold(log []admission) (sum float64) {
	for _, w := range l.run.s.Regions.Wipes {
		for _, a := range log {
			at := time.Duration(a.at - l.run.clock(0))
			if a.place == w.Region && at > w.At-l.run.s.regionLag() && at <= w.At {
				sum += float64(l.Cost)
			}
		}
	}
	return sum
}

// sharesHold reports whether all regions have known for two periods that one is cut off, so that each
// holds to its share, and how many events may be above the limit then: what instances of a region do not
// know of each other, and one for each region.
func (l *load) sharesHold(log []admission, at time.Duration) (allowed float64, held bool) {
	r, v := l.run, l.Versions[0]
	if v.Terms.Handling.OnPartition != tidegate.PartitionShare {
		return 0, false
	}
	for _, c := range r.s.Regions.Cuts {
		noticed := c.From + region.PartitionAfter + time.Second + r.s.regionLag()
		held = held || at > noticed+2*period(v) && at < c.To
	}
	if !held {
		return 0, false
	}
	for i, began := len(log)-1, r.clock(0); i >= 0 && time.Duration(log[i].at-began) > at-r.s.ownLag(); i-- {
		allowed += float64(l.Cost)
	}
	return allowed + float64(len(r.places)), held
}

// RandomRegions returns the Scenario of a seed in which three regions with so many nodes share a limit: at any
// distance, by any algorithm; regions are cut off, lose their data, and whoever tells the others ends.
func RandomRegions(seed uint64, nodes int) Scenario {
	r := &dice{rand.New(rand.NewPCG(seed, 0x726567696f6e73))}
	s := Scenario{
		Name: fmt.Sprint("regions, seed ", seed), Seed: seed, Nodes: nodes,
		Lasts: r.time(6*time.Second, 10*time.Second),
		Shape: []Shape{Even, Even, Burst, Ramp}[r.IntN(4)],
	}
	s.Network = Network{Latency: r.time(0, 5*time.Millisecond), Jitter: r.time(0, time.Millisecond)}
	s.Server.Skew = r.time(-time.Minute, time.Minute)
	if r.one(2) {
		s.Skew = r.time(0, 3*time.Second)
	}
	s.Regions = Regions{Count: 3, Latency: r.time(5*time.Millisecond, 250*time.Millisecond)}
	share := r.one(2)
	if !r.one(4) {
		from := r.time(time.Second, 3*time.Second)
		lasts := r.time(500*time.Millisecond, 4*time.Second)
		if share && r.one(2) { // long enough to be noticed
			lasts = r.time(10*time.Second, 13*time.Second)
			s.Lasts = from + lasts + 3*time.Second
		}
		s.Regions.Cuts = []Cut{{Span{from, from + lasts}, r.IntN(3)}}
	}
	if r.one(3) {
		s.Regions.Wipes = []Wipe{{r.time(time.Second, s.Lasts), r.IntN(3)}}
	}
	for range r.IntN(3) {
		s.Regions.Crashes = append(s.Regions.Crashes, r.time(0, s.Lasts))
	}
	terms := &tidegate.Terms{Handling: tidegate.Handling{Consistency: tidegate.Eventual, OnPartition: tidegate.PartitionContinue}}
	if share {
		terms.Handling.OnPartition = tidegate.PartitionShare
	}
	algorithms := []tidegate.Algorithm{tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SubWindows, tidegate.Quota}
	offered, keys := r.log(700, 2500), 1+r.IntN(2)
	l := tidegate.Spec{Name: "regional", Algorithm: algorithms[r.IntN(4)], Period: r.time(time.Second, 3*time.Second).Truncate(10 * time.Millisecond), Terms: terms}
	window := l.Period.Seconds()
	if l.Algorithm == tidegate.Quota {
		l.Period, l.Calendar, window = 0, tidegate.Day, s.Lasts.Seconds()
	}
	l.Events = int64(max(5, offered/float64(keys)*window/r.log(1.2, 4)))
	s.Subjects = []Subject{{Name: "regional", Keys: keys, PerSecond: offered, Versions: []*tidegate.Limit{tidegate.MustLimit(l)}}}
	return s
}
