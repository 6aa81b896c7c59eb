package hub

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
)

// regions is what a Hub knows about regions, beside its counters.
type regions struct {
	dataSet string
	last    int64 // number of the last change
	to      map[string]sender
	heard   map[string]time.Time
}

// sender is the process that sends to another region.
type sender struct {
	holder [2]uint64
	until  time.Time
	saved  string
}

func newRegions() regions {
	id := tidegate.NewHandle()
	var name [16]byte
	binary.BigEndian.PutUint64(name[:], id[0])
	binary.BigEndian.PutUint64(name[8:], id[1])
	return regions{dataSet: hex.EncodeToString(name[:]), to: map[string]sender{}, heard: map[string]time.Time{}}
}

func (r *regions) clone() regions {
	is := newRegions()
	is.last, is.to, is.heard = r.last, maps.Clone(r.to), maps.Clone(r.heard)
	return is
}

// feedCounters is how many counters are listed at once.
const feedCounters = 512

// Feed implements chain.Regions.
func (h *Hub) Feed(_ context.Context, q chain.FeedQuery) (chain.Feed, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now, r := h.now(), &h.regions
	f := chain.Feed{DataSet: r.dataSet, Last: q.Since}
	t := r.to[q.To]
	if t.holder != q.Holder && t.until.After(now) {
		return f, nil
	}
	t.holder, t.until = q.Holder, now.Add(q.Hold)
	t.saved = cmp.Or(q.Save, t.saved)
	r.to[q.To] = t
	f.Held, f.Saved = true, t.saved
	names := slices.Collect(maps.Keys(h.state))
	names = slices.DeleteFunc(names, func(n name) bool { return h.state[n].change == 0 || h.state[n].change <= q.Since })
	slices.SortFunc(names, func(a, b name) int { return cmp.Compare(h.state[a].change, h.state[b].change) })
	if f.More = len(names) > feedCounters; f.More {
		names = names[:feedCounters]
	}
	for _, n := range names {
		st := h.stateLocked(n, now)
		if c, some := st.replica(q); some {
			c.Name = n.identity + nameSeparator + n.key
			f.Counters = append(f.Counters, c)
		}
		f.Last = st.change
	}
	return f, nil
}

// nameSeparator is between the parts of a counter's name.
const nameSeparator = "\x00\x00"

// replica returns what is to be sent of a counter, and reports whether there is anything to send.
func (st *state) replica(q chain.FeedQuery) (c chain.Replica, some bool) {
	c.Generation = st.generation
	some = st.reset > 0 && (q.All || st.reset > q.Since)
	for _, start := range slices.Sorted(maps.Keys(st.totals)) {
		c.Parts = append(c.Parts, chain.TallyPart{Start: start, End: st.totals[start].End})
	}
	for id, one := range st.instances {
		if one.region == 0 || !q.All && (one.region != q.Own || one.change <= q.Since) {
			continue
		}
		is := chain.ReplicaInstance{ID: id, Number: one.number, Region: one.region}
		for _, p := range c.Parts {
			if n, ok := one.counts[p.Start]; ok {
				is.Counts = append(is.Counts, chain.TallyPart{Start: p.Start, Count: n})
			}
		}
		c.Instances = append(c.Instances, is)
	}
	return c, some || len(c.Instances) > 0
}

// Merge implements chain.Regions.
func (h *Hub) Merge(_ context.Context, g chain.Greeting, counters []chain.Replica) (chain.Welcome, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	for i := range counters {
		h.mergeLocked(&counters[i], g.To, now)
	}
	if g.Age >= 0 {
		h.regions.heard[g.From] = now.Add(-g.Age)
	}
	return chain.Welcome{DataSet: h.regions.dataSet}, nil
}

func (h *Hub) mergeLocked(c *chain.Replica, home int64, now time.Time) {
	identity, key, _ := strings.Cut(c.Name, nameSeparator)
	st := h.stateLocked(name{identity, key}, now)
	if c.Generation > st.generation {
		h.forgetLocked(st, c.Generation, home)
	}
	if c.Generation < st.generation {
		return
	}
	ends := make(map[int64]int64, len(c.Parts))
	for _, p := range c.Parts {
		ends[p.Start] = p.End
	}
	for _, one := range c.Instances {
		own := st.instance(one.ID, one.Region)
		if one.Number <= own.number {
			continue
		}
		parts := slices.Clone(one.Counts)
		for i := range parts {
			parts[i].End = ends[parts[i].Start]
		}
		h.countLocked(st, own, one.Number, one.Region, home, parts, now)
	}
}

// Heard implements chain.Regions.
func (h *Hub) Heard(context.Context) (map[string]time.Time, time.Time, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.regions.heard), h.now(), nil
}
