// Package node is the layer of one fleet instance in front of the shared store. It
// remembers refusals, lets requests for the same key share a call and calls share a
// round trip; when there is no answer by the deadline, a fallback decides. It is a
// [chain.Backend] around another and always has an answer.
//
//	deny cache → coalescer → batcher → call → fallback
//
// A refusal is an answer of the store like any other; no fallback overrides it. The
// fallback `local` goes on counting in a memory store that lives as long as the Node: a
// key has its limit divided by the live instances and starts with what this node last
// saw of it; what was admitted is charged to the shared store once that answers (the
// backlog). Slots are the exception: a lease cannot be taken without asking.
//
// The parts that decide when something happens (coalescer, batcher, circuit) are values
// with a step function that reads no clock.
//
// Start with [New].
package node

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/share"
	"tidegate.dev/tidegate/store/memory"
)

// Node is a [chain.Backend] around another. Use [New]. Its methods may be called from
// any number of goroutines. While the backend answers, its only goroutines are those of
// calls in flight.
type Node struct {
	shards [shards]shard
	inner  chain.Backend
	o      Options
	start  time.Time // all times count from here, by the monotonic clock
	seed   maphash.Seed
	most   int   // the most calls in a batch
	late   error // wraps ErrTimeout, and names the deadline

	deny     denials
	inherit  atomic.Pointer[inheritance] // refusals of a predecessor; nil when they are over
	contexts contexts
	streams  sync.Pool // of *stream
	calls    sync.Pool // of *call
	batches  sync.Pool // of *batch

	servers  atomic.Pointer[[]*server] // by number; replaced under mu
	multi    *server                   // stands for the servers of calls that several take part in
	lag      lag
	impaired atomic.Bool // some server does not get all that is for it

	local     *memory.Store
	instance  uint64 // of what is decided locally
	estimates chain.Estimates[estimate]
	seen      *seen
	sizes     share.Sizes
	scales    atomic.Pointer[[]scale] // in order; see noteNodes
	parts     sync.Pool               // of *part
	count     counts

	unaskable unasked
	leases    lostLeases
	boot      [2]uint64 // random: what posts of this process are known by
	// chargesOnce is true until the backend turns out not to support posts.
	chargesOnce atomic.Bool
	stop        chan struct{}
	stopped     sync.WaitGroup

	seeding sync.Mutex        // serializes seedLocal; taken before mu
	seeded  map[uint64]uint64 // under seeding: words of seen that say more than the local store can be charged, by seen.name

	telling sync.Mutex // serializes OnState

	mu         sync.Mutex // taken after shard.mu
	closed     bool       // under mu
	handedOver bool       // under mu: the backlog was handed over
}

var _ chain.Backend = (*Node)(nil)

// New returns a Node around inner, whose servers it assumes to be OK. Close it at the end.
func New(inner chain.Backend, o Options) *Node {
	o.complete()
	n := &Node{
		inner:  inner,
		o:      o,
		start:  time.Now(),
		seed:   maphash.MakeSeed(),
		most:   inner.MaxBatch(),
		late:   fmt.Errorf("%w (%s)", ErrTimeout, o.Deadline),
		local:  memory.Open(memory.Config{MaxBytes: o.LocalBytes, Now: o.clock()}),
		seen:   newSeen(o.Remember),
		seeded: make(map[uint64]uint64),
		stop:   make(chan struct{}),

		instance: tidegate.NewHandle()[0] | 1,
	}
	for i := range n.shards {
		n.shards[i].streams = make(map[uint64]*stream)
	}
	n.batches.New = func() any { return new(batch) }
	n.streams.New = func() any { return new(stream) }
	n.calls.New = func() any {
		c := new(call)
		c.run = func() { n.workRest(c) }
		return c
	}
	n.parts.New = func() any { return new(part) }
	n.deny.init(o.DenyEntries)
	n.boot = randomWords()
	n.chargesOnce.Store(true)
	n.unaskable.tell = o.OnUnasked
	n.leases.tell = o.OnLostLease
	n.multi = n.newServer(-1)
	n.servers.Store(&[]*server{n.newServer(0)})
	return n
}

// Close stops probing and posting, and waits until that has ended; the rest of the backlog is
// lost. It does not close the backend. Requests are still answered afterwards; if the circuit
// is open, fallbacks decide them for good.
func (n *Node) Close() error {
	n.mu.Lock()
	if !n.closed {
		n.closed = true
		close(n.stop)
	}
	n.mu.Unlock()
	n.unaskable.close()
	n.leases.close()
	n.stopped.Wait()
	return nil
}

// Forget makes all remembered refusals void. Call it when limits, or counters, were changed by
// somebody else. While the backend is away, refusals under the same limit still hold.
func (n *Node) Forget() { n.deny.forget() }

// now returns the time since the Node was made, by the monotonic clock.
func (n *Node) now() time.Duration { return time.Since(n.start) }

// wall converts now, as of Node.now, to the wall clock, Skew included.
func (n *Node) wall(now time.Duration) time.Time { return n.start.Add(now + n.o.Skew) }

// toHandOver converts when, as of Node.now, to the current wall clock, which may have been set since the
// Node was made: it is the only clock that a successor shares.
func (n *Node) toHandOver(when time.Duration) time.Time {
	return time.Now().Round(0).Add(when - n.now())
}

// Take implements tidegate.Store. It returns an error only if the caller has left, or its
// checks are not valid for any store. A caller that has left may still be charged.
func (n *Node) Take(ctx context.Context, checks []tidegate.Check, copies int) (d tidegate.Decision, err error) {
	if err := ctx.Err(); err != nil && !chain.FallsBack(ctx) {
		return tidegate.Decision{}, err
	}
	if err = n.take(ctx, checks, copies, &d); err != nil && chain.FallsBack(ctx) && sound(checks, copies) {
		d, _, err = n.decideLocally(checks, copies, n.late, n.now(), false) // it may have been charged
	}
	return d, err
}

// take is Take, but it writes the answer to *to: returning it through all these functions would
// cost a tenth of a shared call.
func (n *Node) take(ctx context.Context, checks []tidegate.Check, copies int, to *tidegate.Decision) (err error) {
	t, ok := traitsOf(checks)
	if !ok || copies < 1 {
		*to, err = n.local.Take(ctx, checks, copies) // says what is wrong
		return err
	}
	if n.o.DenyEntries < 0 {
		t &^= remembered
	}
	if t&remembered != 0 && !n.deny.none() {
		if *to, ok = n.denied(checks); ok {
			n.count.denied.Add(1)
			return nil
		}
	}
	if copies != 1 { // they are together already
		t &^= coalescible
	}
	now := n.now()
	if err := ctx.Err(); err != nil { // there is no time to ask
		if !chain.FallsBack(ctx) {
			return err
		}
		*to, _, err = n.decideLocally(checks, copies, n.late, now, true)
		return err
	}
	if n.impaired.Load() {
		return n.takeImpaired(ctx, checks, copies, t, now, to)
	}
	return n.ask(ctx, checks, copies, t, now, to)
}

// sound reports whether checks are valid, so that a store would answer them.
func sound(checks []tidegate.Check, copies int) bool {
	_, ok := traitsOf(checks)
	return ok && copies >= 1
}

// MaxBatch implements chain.Backend: requests are batched here, not above.
func (n *Node) MaxBatch() int { return 1 }

// TakeBatch implements chain.Backend, one by one.
func (n *Node) TakeBatch(ctx context.Context, asks []chain.Ask) error {
	return chain.TakeEach(ctx, n, asks)
}

// Server implements chain.Backend.
func (n *Node) Server(l *tidegate.Limit, key string) int { return n.inner.Server(l, key) }

// Servers implements chain.Backend.
func (n *Node) Servers() []string { return n.inner.Servers() }

// Heard implements chain.Backend.
func (n *Node) Heard(server int) (heard, asked time.Time) { return n.inner.Heard(server) }
