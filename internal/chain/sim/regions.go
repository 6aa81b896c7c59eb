package sim

import (
	"context"
	"fmt"
	"time"

	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/eventual"
	"tidegate.dev/tidegate/internal/chain/region"
)

// Regions describes the regions that nodes are dealt to in turn, each with a Redis of its own.
// The zero value is a single region.
type Regions struct {
	Count   int
	Latency time.Duration // of a round trip between two regions
	Cuts    []Cut
	Wipes   []Wipe
	// Crashes are when the syncers of all regions are killed and new ones start.
	Crashes []time.Duration
}

func (g *Regions) describe() (text string) {
	if g.Count < 2 {
		return ""
	}
	text = fmt.Sprintf(", %d regions %s apart", g.Count, g.Latency)
	for _, c := range g.Cuts {
		text += fmt.Sprintf(", region %d cut off from %s to %s", c.Region, c.From, c.To)
	}
	for _, w := range g.Wipes {
		text += fmt.Sprintf(", Redis of region %d emptied at %s", w.Region, w.At)
	}
	for _, at := range g.Crashes {
		text += fmt.Sprintf(", syncers restarted at %s", at)
	}
	return text
}

// Cut is a time in which a region hears nothing of the others, nor they of it.
type Cut struct {
	Span
	Region int
}

// Wipe is a moment at which the Redis of a region loses everything.
type Wipe struct {
	At     time.Duration
	Region int
}

// place is a region of a run.
type place struct {
	name   string
	server *server
	region *eventual.Region // nil if there is a single region
	watch  *region.Watch
	syncer *region.Syncer
}

// place returns the region of a node.
func (r *run) place(node int) *place { return r.places[node%len(r.places)] }

// nodesOf returns how many nodes are in the region of node, itself included.
func (r *run) nodesOf(node int) (n int) {
	for i := range r.s.Nodes {
		if r.place(i) == r.place(node) {
			n++
		}
	}
	return n
}

// openRegions starts the servers, and the syncers between them.
func (r *run) openRegions() {
	count := max(r.s.Regions.Count, 1)
	for i := range count {
		r.places = append(r.places, &place{name: fmt.Sprint("region", i), server: newServer(r.s, r.start)})
	}
	r.server = r.places[0].server
	for i, p := range r.places {
		if count == 1 {
			break
		}
		p.watch = region.NewWatch(regionLink{r, i, i}, r.otherNames(i))
		p.region = &eventual.Region{Number: chain.RegionNumber(p.name), Of: count, Rank: i, CutOff: p.watch.CutOff}
		p.syncer = r.syncer(i)
	}
}

func (r *run) otherNames(own int) (names []string) {
	for i, p := range r.places {
		if i != own {
			names = append(names, p.name)
		}
	}
	return names
}

// syncer starts the Syncer that tells the other regions what is counted in region own.
func (r *run) syncer(own int) *region.Syncer {
	o := region.Options{Name: r.places[own].name, Store: regionLink{r, own, own}}
	for i, p := range r.places {
		if i != own {
			o.Others = append(o.Others, region.Other{Name: p.name, Store: regionLink{r, own, i}})
		}
	}
	return region.Sync(o)
}

func (r *run) closeRegions() {
	for _, p := range r.places {
		if p.syncer != nil {
			p.syncer.Close()
			p.watch.Close()
		}
	}
}

// playRegionFaults plays the wipes and crashes, in order of time. Cuts are up to the links.
func (r *run) playRegionFaults() {
	type event struct {
		at time.Duration
		do func()
	}
	var all []event
	for _, w := range r.s.Regions.Wipes {
		all = append(all, event{w.At, r.places[w.Region].server.loseAll})
	}
	for _, at := range r.s.Regions.Crashes {
		all = append(all, event{at, func() {
			for i, p := range r.places {
				p.syncer.Close()
				p.syncer = r.syncer(i)
			}
		}})
	}
	for len(all) > 0 {
		next := 0
		for i := range all {
			if all[i].at < all[next].at {
				next = i
			}
		}
		r.sleepUntil(all[next].at)
		all[next].do()
		all = append(all[:next], all[next+1:]...)
	}
}

// cut reports whether nothing gets from one region to another now.
func (r *run) cut(from, to int) bool {
	now := time.Since(r.start)
	for _, c := range r.s.Regions.Cuts {
		if from != to && (c.Region == from || c.Region == to) && c.has(now) {
			return true
		}
	}
	return false
}

// regionLink is the network from a region to the store of another, or to its own.
type regionLink struct {
	r        *run
	from, to int
}

var _ chain.Regions = regionLink{}

// call runs do at the other end. While the regions are cut off, it hangs until ctx ends.
func (l regionLink) call(ctx context.Context, do func(chain.Regions)) error {
	trip := l.r.s.Network.Latency
	if l.from != l.to {
		trip = l.r.s.Regions.Latency
	}
	if l.r.cut(l.from, l.to) {
		<-ctx.Done()
		return ctx.Err()
	}
	time.Sleep(trip / 2)
	do(l.r.places[l.to].server.tallies())
	time.Sleep(trip / 2)
	if l.r.cut(l.from, l.to) { // it was done, but the answer is lost
		<-ctx.Done()
	}
	return ctx.Err()
}

// Feed implements chain.Regions.
func (l regionLink) Feed(ctx context.Context, q chain.FeedQuery) (f chain.Feed, err error) {
	err = l.call(ctx, func(s chain.Regions) { f, _ = s.Feed(ctx, q) })
	return f, err
}

// Merge implements chain.Regions.
func (l regionLink) Merge(ctx context.Context, g chain.Greeting, counters []chain.Replica) (w chain.Welcome, err error) {
	err = l.call(ctx, func(s chain.Regions) { w, _ = s.Merge(ctx, g, counters) })
	return w, err
}

// Heard implements chain.Regions.
func (l regionLink) Heard(ctx context.Context) (at map[string]time.Time, now time.Time, err error) {
	err = l.call(ctx, func(s chain.Regions) { at, now, _ = s.Heard(ctx) })
	return at, now, err
}
