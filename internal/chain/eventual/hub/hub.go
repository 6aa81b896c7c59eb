// Package hub adds up tallies in memory, as the scripts of package store/redis do in Redis. It is for
// simulations and tests; a fleet of real processes needs a store that all of them reach.
//
// Start with [New].
package hub

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
)

// Hub is a [chain.Tallies] and a [chain.Regions] in memory. Use [New].
type Hub struct {
	now func() time.Time

	mu      sync.Mutex
	state   map[name]*state
	regions regions
}

type name struct{ identity, key string }

// state is what all instances have counted for one counter.
type state struct {
	generation int64
	reset      int64                     // number of the change that began the generation
	change     int64                     // number of the last change
	totals     map[int64]chain.TallyPart // by their start
	instances  map[[2]uint64]*instance
}

// instance is what one instance has sent.
type instance struct {
	number uint64
	till   time.Time // until when its demand counts
	demand int64
	region int64
	change int64           // number of the last change of its counts
	counts map[int64]int64 // by the start of the part
}

var (
	_ chain.Tallies = (*Hub)(nil)
	_ chain.Regions = (*Hub)(nil)
)

// New returns a Hub whose clock is now.
func New(now func() time.Time) *Hub {
	return &Hub{now: now, state: map[name]*state{}, regions: newRegions()}
}

// Clone returns another Hub with the same counts. Its data set has another name, as after a
// failover.
func (h *Hub) Clone() *Hub {
	h.mu.Lock()
	defer h.mu.Unlock()
	is := New(h.now)
	for n, st := range h.state {
		copied := *st
		copied.totals, copied.instances = maps.Clone(st.totals), make(map[[2]uint64]*instance, len(st.instances))
		for id, one := range st.instances {
			other := *one
			other.counts = maps.Clone(one.counts)
			copied.instances[id] = &other
		}
		is.state[n] = &copied
	}
	is.regions = h.regions.clone()
	return is
}

// Time implements chain.Tallies.
func (h *Hub) Time(context.Context) (time.Time, error) { return h.now(), nil }

// Exchange implements chain.Tallies.
func (h *Hub) Exchange(_ context.Context, tallies []chain.Tally) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range tallies {
		tallies[i].Answer, tallies[i].Err = h.addLocked(&tallies[i]), nil
	}
	return nil
}

// stateLocked returns the state of a counter, without parts that are over.
func (h *Hub) stateLocked(n name, now time.Time) *state {
	st := h.state[n]
	if st == nil {
		st = newState()
		n.identity, n.key = strings.Clone(n.identity), strings.Clone(n.key) // the caller may use its memory again
		h.state[n] = st
	}
	us := now.UnixMicro()
	maps.DeleteFunc(st.totals, func(_ int64, p chain.TallyPart) bool { return p.End <= us })
	return st
}

func newState() *state {
	return &state{totals: map[int64]chain.TallyPart{}, instances: map[[2]uint64]*instance{}}
}

// forgetLocked forgets all counts and begins another generation.
func (h *Hub) forgetLocked(st *state, generation int64, home int64) {
	*st = *newState()
	st.generation = generation
	st.reset = h.changedLocked(st, home)
}

// changedLocked returns the number of a new change, if several regions share the counter.
func (h *Hub) changedLocked(st *state, home int64) int64 {
	if home != 0 {
		h.regions.last++
		st.change = h.regions.last
	}
	return st.change
}

func (h *Hub) addLocked(t *chain.Tally) (a chain.TallyAnswer) {
	now := h.now()
	st := h.stateLocked(name{t.Limit.Identity(), t.Key}, now)
	switch {
	case t.Reset:
		h.forgetLocked(st, max(st.generation, t.Generation)+1, t.Region)
	case t.Generation >= st.generation:
		if t.Generation > st.generation {
			st.generation, st.reset = t.Generation, h.changedLocked(st, t.Region)
		}
		own := st.instance(t.Instance, t.Region)
		if t.Number > own.number {
			own.till, own.demand = now.Add(t.DemandLasts), t.Demand
			h.countLocked(st, own, t.Number, t.Region, t.Region, t.Parts, now)
		}
	}
	a.Generation = st.generation
	for id, one := range st.instances {
		if id != t.Instance && one.till.After(now) {
			a.Demand += one.demand
		}
	}
	for _, start := range slices.Sorted(maps.Keys(st.totals)) {
		p := st.totals[start]
		a.Totals = append(a.Totals, chain.TallyPart{Start: start, Count: p.Count, Abroad: p.Abroad})
	}
	return a
}

func (st *state) instance(id tidegate.Handle, region int64) *instance {
	if st.instances[id] == nil {
		st.instances[id] = &instance{region: region, counts: map[int64]int64{}}
	}
	return st.instances[id]
}

// countLocked adds to the totals by how much the counts of an instance have grown since its last tally.
// region is that of the instance, and home that of the hub.
func (h *Hub) countLocked(st *state, own *instance, number uint64, region, home int64, parts []chain.TallyPart, now time.Time) {
	own.number = number
	if region != 0 && own.region != region {
		own.region, own.change = region, h.changedLocked(st, home)
	}
	for _, p := range parts {
		if was, known := own.counts[p.Start]; p.End <= now.UnixMicro() || known && was == p.Count {
			continue
		}
		sum, grown := st.totals[p.Start], p.Count-own.counts[p.Start]
		sum.Start, sum.End = p.Start, max(sum.End, p.End)
		sum.Count = max(0, sum.Count+grown)
		if home != 0 && own.region != home {
			sum.Abroad = max(0, sum.Abroad+grown)
		}
		st.totals[p.Start], own.counts[p.Start] = sum, p.Count
		own.change = max(own.change, h.changedLocked(st, home))
	}
}
