package sim

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain/eventual"
	"tidegate.dev/tidegate/internal/chain/lease"
	"tidegate.dev/tidegate/internal/chain/node"
	"tidegate.dev/tidegate/internal/chain/queue"
	"tidegate.dev/tidegate/internal/chain/registry"
	"tidegate.dev/tidegate/internal/chain/split"
)

// instance is a process of the fleet, put together as package fleet does it.
type instance struct {
	link     *link
	node     *node.Node
	lease    *lease.Store
	eventual *eventual.Store
	queue    *queue.Store
	registry *registry.Registry
	dead     atomic.Bool
}

// Sizes of an instance: a hundred share a machine here, and see fewer keys than in life.
const (
	denyEntries = 1 << 12
	remember    = 1 << 15
	localBytes  = 16 << 20
)

// newInstance starts the node with a number. known means that it knows how many others there are
// from the start, as one that has run for a while.
func (r *run) newInstance(number int, known bool) *instance {
	in := &instance{link: &link{
		Network: r.s.Network, node: number, known: known, born: time.Since(r.start), server: r.place(number).server, faults: r.s.Faults, start: r.start, deadline: r.s.deadline(),
		rand: rand.New(rand.NewPCG(r.s.Seed, uint64(number)+1)),
	}}
	r.mu.Lock()
	r.links = append(r.links, in.link)
	r.mu.Unlock()
	in.registry = registry.New(in.link, registry.Options{})
	if known {
		in.registry.Assume(r.nodesOf(number))
	}
	skew := time.Duration(0)
	if most := r.s.Skew; most > 0 {
		skew = time.Duration(rand.New(rand.NewPCG(r.s.Seed, ^uint64(number))).Int64N(2*int64(most))) - most
	}
	in.node = node.New(in.link, node.Options{
		Name: "Redis", Deadline: r.s.Deadline, Instances: in.registry.Size,
		DenyEntries: denyEntries, Remember: remember, LocalBytes: localBytes, Skew: skew,
	})
	in.lease = lease.New(in.node, in.node, lease.Options{Instances: in.registry.Size})
	own := func() time.Time { return time.Now().Add(skew) }
	in.eventual = eventual.New(in.lease, eventual.Options{Tallies: in.link.Tallies(), Region: r.place(number).region, Instances: in.registry.Size, Deadline: r.s.Deadline, Now: own})
	in.queue = queue.New(split.New(in.eventual, split.Options{
		Members: in.registry.Membership, LocalBytes: localBytes, Now: own,
	}))
	in.registry.Join()
	return in
}

// crash ends an instance without a word: nobody gets its answers.
func (in *instance) crash() {
	in.dead.Store(true)
	in.link.crash()
	in.close()
}

func (in *instance) close() {
	in.registry.Close()
	in.eventual.Close()
	in.lease.Close()
	_ = in.node.Close()
}

func (in *instance) take(checks []tidegate.Check) (tidegate.Decision, error) {
	return in.queue.Take(context.Background(), checks, 1)
}
