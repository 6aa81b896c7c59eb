package eventual

import (
	"slices"
	"sync"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/store/memory"
)

// counter is what this instance knows of one key under one limit. The memory store, by which
// requests are decided, has the sum of the counts.
type counter struct {
	name   counterName
	order  uint64 // counters are locked in this order
	weight int    // see table

	mu    sync.Mutex
	limit *tidegate.Limit // the version that the last request had
	gone  bool            // it is no longer in the table
	// counts are of the windows that matter, the oldest first.
	counts []count
	last   struct { // the last result of windowAtLocked
		limit *tidegate.Limit
		window
	}

	instance   [2]uint64 // names these counts in the store; see beginAnewLocked
	number     uint64    // of the last tally
	generation int64

	asked     int64         // events asked for since the last tally
	demand    int64         // events asked for per interval, as of the last tally
	others    int64         // demand of all other instances together
	touched   time.Duration // when a request last used it
	collected time.Duration // when the last tally was made
	told      time.Duration // when the last tally was made that was answered; 0 means none was

	reserved int64 // start of the window in which the shares of other regions are held back; 0 means in none

	failed         time.Duration // when the last tally failed; 0 means that it was answered
	queued, urgent bool          // it waits for an exchange; see queue
	due            bool          // it is in queue.due; under queue.mu
	answered       chan struct{} // closed after the next exchange; nil if nobody waits for one
}

// count is how many events are known in a window.
type count struct {
	window
	own    int64 // counted by this instance
	sent   int64 // of own, what the store is known to have
	others int64 // counted by all other instances
	abroad int64 // of others, what was counted in other regions
}

func newInstance() [2]uint64 { return tidegate.NewHandle() }

// windowAtLocked is windowAt with the last result remembered: calendar windows take long to compute.
func (c *counter) windowAtLocked(l *tidegate.Limit, us int64) window {
	if w := &c.last; w.limit != l || us < w.start || us >= w.end {
		w.limit, w.window = l, windowAt(l, us)
	}
	return c.last.window
}

// atLocked returns the count of a window, which is added if needed.
func (c *counter) atLocked(w window) *count {
	i := len(c.counts)
	for i > 0 && c.counts[i-1].start > w.start {
		i--
	}
	if i > 0 && c.counts[i-1].start == w.start {
		return &c.counts[i-1]
	}
	c.counts = slices.Insert(c.counts, i, count{window: w})
	return &c.counts[i]
}

// addLocked counts events at an instant in ticks.
func (c *counter) addLocked(l *tidegate.Limit, at, events int64) {
	c.atLocked(c.windowAtLocked(l, at/algo.Micro)).own += events
}

// maxAsked bounds the demand: it is more than any limit can admit, and small enough for a store to
// sum over many instances.
const maxAsked = 1 << 40

// askedLocked adds n requests with this check to the demand, unless the cost can never be admitted:
// such demand would only reduce the shares of the other instances.
func (c *counter) askedLocked(check *tidegate.Check, n int) {
	if check.Cost <= check.Limit.Capacity() {
		c.asked = min(c.asked+check.Cost*min(int64(n), maxAsked/max(check.Cost, 1)), maxAsked)
	}
}

// takeBackLocked uncounts up to so many events of this instance: those of the window of the instant at,
// in ticks, or the latest ones if at is negative. It returns how many it has uncounted.
func (c *counter) takeBackLocked(l *tidegate.Limit, at, events int64) (taken int64) {
	for i := len(c.counts) - 1; i >= 0 && taken < events; i-- {
		one := &c.counts[i]
		if at >= 0 && c.windowAtLocked(l, at/algo.Micro).start != one.start {
			continue
		}
		n := min(events-taken, one.own)
		one.own -= n
		taken += n
	}
	return taken
}

// unsentLocked returns how many events in windows that still matter have not been sent to the store.
func (c *counter) unsentLocked(us int64) (sum int64) {
	for i := len(c.counts) - 1; i >= 0; i-- {
		if one := &c.counts[i]; one.over > us {
			sum += one.own - one.sent
		}
	}
	return max(sum, 0)
}

// toldLocked reports whether the store has the count of every window that still matters. Unlike
// unsentLocked, it does not set events given back in one window against unsent ones of another.
func (c *counter) toldLocked(us int64) bool {
	return !slices.ContainsFunc(c.counts, func(one count) bool { return one.over > us && one.own != one.sent })
}

// dropLocked forgets windows that no longer matter.
func (c *counter) dropLocked(us int64) {
	c.counts = slices.DeleteFunc(c.counts, func(one count) bool { return one.over <= us })
}

// shareLocked returns the share, 0 to 1, of what is left that this instance may take before the next
// exchange: in proportion to its part of the fleet's demand, but never less than an equal share. It
// is the equal share if fresh is false: the demand of the others is then not known.
func (c *counter) shareLocked(fresh bool, instances int) float64 {
	equal := 1 / float64(max(instances, 1))
	switch {
	case !fresh:
		return equal
	case c.others == 0:
		return 1
	}
	return max(float64(c.demand)/float64(c.demand+c.others), equal)
}

// silence is how old the last answered tally of a counter may be: after that, this instance counts
// under a new name, because the store forgets the old one after twice as long.
const silence = 30 * time.Minute

// tallyLocked makes the next tally.
func (c *counter) tallyLocked(region *Region, now, interval time.Duration, us int64) chain.Tally {
	if c.told > 0 && now-c.told > silence {
		c.beginAnewLocked()
	}
	c.dropLocked(us)
	elapsed := min(max(now-c.collected, interval/quick), 10*interval)
	if c.collected == 0 {
		elapsed = interval
	}
	c.demand = max(int64(float64(c.asked)*float64(interval)/float64(elapsed)), c.demand/2)
	c.asked, c.collected = 0, now
	c.number++
	t := chain.Tally{
		Limit: c.limit, Key: c.name.key, Region: region.number(c.limit), Instance: c.instance, Number: c.number, Generation: c.generation,
		Demand: c.demand, DemandLasts: 3 * interval,
	}
	for _, one := range c.counts {
		if one.own > 0 || one.sent > 0 {
			t.Parts = append(t.Parts, chain.TallyPart{Start: one.start, End: one.over, Count: one.own})
		}
	}
	return t
}

// beginAnewLocked begins to count under a new name. What the store already has stays under the old
// one, and is from now on the count of another instance.
func (c *counter) beginAnewLocked() {
	for i := range c.counts {
		one := &c.counts[i]
		one.others += one.sent
		one.own, one.sent = max(one.own-one.sent, 0), 0
	}
	c.instance, c.number = newInstance(), 0
}

// heardLocked updates the counts by the answer to a tally.
func (c *counter) heardLocked(t *chain.Tally, us int64) {
	a := &t.Answer
	counted := a.Generation <= t.Generation
	if !counted { // somebody has reset it: what was told before is gone
		for i := range c.counts {
			c.counts[i].own = max(c.counts[i].own-c.counts[i].sent, 0)
			c.counts[i].sent = 0
		}
		c.instance, c.number, c.generation = newInstance(), 0, a.Generation
	}
	for i := range c.counts {
		c.counts[i].others, c.counts[i].abroad = 0, 0
	}
	if counted {
		for _, p := range t.Parts {
			one := c.atLocked(window{start: p.Start, over: p.End})
			one.sent = p.Count
			one.others = -p.Count // the total includes it
		}
	}
	for _, p := range a.Totals {
		one := c.atLocked(c.windowOfLocked(p.Start))
		one.others += p.Count
		one.abroad = p.Abroad
	}
	for i := range c.counts {
		c.counts[i].others = max(c.counts[i].others, 0)
	}
	c.others, c.told = a.Demand, c.collected
	c.dropLocked(us)
}

// windowOfLocked returns the window that is named by start. Its end is that of the limit's current
// version, even if another version with longer or shorter windows has named it.
func (c *counter) windowOfLocked(start int64) window {
	w := windowAt(c.limit, start)
	w.start = start
	return w
}

// knownLocked returns what all instances are known to have counted in the windows that matter.
func (c *counter) knownLocked(us int64) []memory.Count {
	all := make([]memory.Count, 0, len(c.counts)+1)
	for _, one := range c.counts {
		if one.over > us && one.start <= us {
			all = append(all, memory.Count{At: time.UnixMicro(one.start), Events: one.own + one.others})
		}
	}
	return all
}
