// Package hub adds up tallies in memory, as the script of package store/redis does in Redis. It is for
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

	"tidegate.dev/tidegate/internal/chain"
)

// Hub is a [chain.Tallies] in memory. Use [New].
type Hub struct {
	now func() time.Time

	mu    sync.Mutex
	state map[name]*state
}

type name struct{ identity, key string }

// state is what all instances have counted of a counter.
type state struct {
	generation int64
	totals     map[int64]chain.TallyPart // by their start
	instances  map[[2]uint64]*instance
}

// instance is what one has told.
type instance struct {
	number uint64
	till   time.Time // its demand counts
	demand int64
	counts map[int64]int64 // by the start of the part
}

var _ chain.Tallies = (*Hub)(nil)

// New returns a Hub with a clock.
func New(now func() time.Time) *Hub { return &Hub{now: now, state: map[name]*state{}} }

// Clone returns another Hub that has added up the same.
func (h *Hub) Clone() *Hub {
	h.mu.Lock()
	defer h.mu.Unlock()
	is := New(h.now)
	for n, st := range h.state {
		copied := &state{generation: st.generation, totals: maps.Clone(st.totals), instances: make(map[[2]uint64]*instance, len(st.instances))}
		for id, one := range st.instances {
			other := *one
			other.counts = maps.Clone(one.counts)
			copied.instances[id] = &other
		}
		is.state[n] = copied
	}
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

func (h *Hub) addLocked(t *chain.Tally) (a chain.TallyAnswer) {
	n := name{t.Limit.Identity(), t.Key}
	st := h.state[n]
	if st == nil || t.Reset {
		fresh := &state{totals: map[int64]chain.TallyPart{}, instances: map[[2]uint64]*instance{}}
		if st != nil {
			fresh.generation = st.generation
		}
		n.key = strings.Clone(n.key) // the caller may use its memory again
		st = fresh
		h.state[n] = st
	}
	now := h.now()
	us := now.UnixMicro()
	maps.DeleteFunc(st.totals, func(_ int64, p chain.TallyPart) bool { return p.End <= us })
	switch {
	case t.Reset:
		st.generation = max(st.generation, t.Generation) + 1
	case t.Generation >= st.generation:
		st.generation = t.Generation
		st.add(t, now)
	}
	a.Generation = st.generation
	for id, one := range st.instances {
		if id != t.Instance && one.till.After(now) {
			a.Demand += one.demand
		}
	}
	for _, start := range slices.Sorted(maps.Keys(st.totals)) {
		a.Totals = append(a.Totals, chain.TallyPart{Start: start, Count: st.totals[start].Count})
	}
	return a
}

// add counts what has grown since the last tally of the same instance.
func (st *state) add(t *chain.Tally, now time.Time) {
	own := st.instances[t.Instance]
	if own == nil {
		own = &instance{counts: map[int64]int64{}}
		st.instances[t.Instance] = own
	} else if t.Number <= own.number {
		return
	}
	own.number, own.till, own.demand = t.Number, now.Add(t.DemandLasts), t.Demand
	for _, p := range t.Parts {
		if p.End <= now.UnixMicro() {
			continue
		}
		sum := st.totals[p.Start]
		sum.Start, sum.End = p.Start, max(sum.End, p.End)
		sum.Count = max(0, sum.Count+p.Count-own.counts[p.Start])
		st.totals[p.Start], own.counts[p.Start] = sum, p.Count
	}
}
