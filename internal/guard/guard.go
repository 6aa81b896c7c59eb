// Package guard keeps the trouble of a shared store from becoming everybody's. It
// is a Store around another, and it always has an answer: when the inner store has
// none within the deadline, each rule's fallback answers, allow, deny or local; when
// it fails again and again it is left alone, but for probes, until it answers.
//
// A refusal is an answer of the inner store like any other. It is never taken for a
// failure, and no fallback looks at it again.
//
// The fallback `local` counts on, in a memory store that lives as long as the Guard:
// a key is held to its limit divided by the live nodes, starts with what this node
// last saw of it in the inner store, and what was admitted is charged to the inner
// store once that answers. Slots are the exception: a lease cannot be taken unasked,
// so they start free here and are not charged there.
//
// Start with [New].
package guard

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// Defaults of Options.
const (
	DefaultDeadline   = 25 * time.Millisecond
	DefaultInFlight   = 4096
	DefaultFailures   = 5
	DefaultLocalBytes = 64 << 20
	DefaultRemember   = 1 << 16
)

// Options of a Guard. Every field has a default.
type Options struct {
	// Deadline is by when every call has an answer; 0 means DefaultDeadline.
	// Calls that begin about together end together: a call may be given up to an
	// eighth less.
	Deadline time.Duration
	// Inline calls the inner store on the goroutine of the caller, which saves
	// about a microsecond. It is for inner stores that return when their context
	// ends, whatever happens; one that does not stalls its callers. By default
	// every call has a goroutine of its own, which can be left behind. Take is
	// called under a context without the values of the caller's, which would
	// have to be put together for each call.
	Inline bool
	// InFlight bounds the calls that the inner store has not returned from, those
	// left behind included; 0 means DefaultInFlight. Beyond, fallbacks answer at
	// once. It means nothing to Inline.
	InFlight int
	// Failures is how many calls must fail, and as many as succeed meanwhile, for
	// the inner store to be left alone; 0 means DefaultFailures.
	Failures int
	// Default is the fallback for limits without Terms; nil means
	// tidegate.FailLocal.
	Default *tidegate.FailMode
	// Instances is how many nodes share the limits, this one included; nil means
	// one. It is asked for every decision of the local store.
	Instances func() int
	// LocalBytes bounds the local store; 0 means DefaultLocalBytes.
	LocalBytes int64
	// Remember is for how many keys it is known what was last seen of them, 16
	// bytes each; 0 means DefaultRemember. The ones seen longest ago go first.
	Remember int
	// OnState is told of every change of state, from one goroutine, in order. A
	// state that was over before anybody could be told is left out.
	OnState func(Health)
	// OnUnasked is told when the inner store cannot be asked about a rule, and when
	// that is over; not of every request.
	OnUnasked func(Unasked)
}

func (o *Options) complete() {
	if o.Deadline <= 0 {
		o.Deadline = DefaultDeadline
	}
	if o.InFlight <= 0 {
		o.InFlight = DefaultInFlight
	}
	if o.Failures <= 0 {
		o.Failures = DefaultFailures
	}
	if o.Default == nil {
		o.Default = new(tidegate.FailLocal)
	}
	if o.Instances == nil {
		o.Instances = func() int { return 1 }
	}
	if o.LocalBytes <= 0 {
		o.LocalBytes = DefaultLocalBytes
	}
	if o.Remember <= 0 {
		o.Remember = DefaultRemember
	}
}

// Guard is a [tidegate.Store] around another, also a Renewer, Reserver and Resetter
// as far as that is one. Use [New].
//
// While the inner store answers, a Guard has no goroutine but those of calls under
// way; while it does not, one that probes it and settles up with it afterwards.
type Guard struct {
	inner  tidegate.Store
	sharer sharer // the inner store, if it is one and called inline
	o      Options
	start  time.Time // all times count from here, by the monotonic clock
	local  *memory.Store
	seen   *seen
	sizes  sizes
	round  atomic.Pointer[round]
	calls  sync.Pool // of *call
	parts  sync.Pool // of *part
	count  counts
	late   error // ErrTimeout, with the deadline
	cannot unasked

	// share of the keys, in 64ths, goes to the inner store; see breaker.share.
	share   atomic.Uint32
	why     atomic.Pointer[error] // what fallbacks give as their reason
	stop    chan struct{}
	stopped sync.WaitGroup

	seeding sync.Mutex // serializes seed; taken before mu

	mu        sync.Mutex
	breaker   breaker       // under mu
	turned    time.Duration // under mu: when it became OK, or ceased to be
	cause     error         // under mu: the last failure
	owed      owed          // under mu
	reachable time.Duration // under mu: when the inner store last turned out to be
	keeping   bool          // under mu: keep runs
	closed    bool          // under mu
}

var (
	_ tidegate.Store    = (*Guard)(nil)
	_ tidegate.Renewer  = (*Guard)(nil)
	_ tidegate.Reserver = (*Guard)(nil)
	_ tidegate.Resetter = (*Guard)(nil)
)

// New returns a Guard of inner, which it takes to be well. Close it at the end.
func New(inner tidegate.Store, o Options) *Guard {
	o.complete()
	g := &Guard{
		inner: inner,
		o:     o,
		start: time.Now(),
		local: memory.Open(memory.Config{MaxBytes: o.LocalBytes}),
		seen:  newSeen(o.Remember),
		stop:  make(chan struct{}),
		late:  fmt.Errorf("%w (%s)", ErrTimeout, o.Deadline),
	}
	if o.Inline {
		g.sharer, _ = inner.(sharer)
	}
	g.breaker.failures = o.Failures
	g.cannot.tell = o.OnUnasked
	g.share.Store(whole)
	g.calls.New = func() any { return newCall(g) }
	g.parts.New = func() any { return new(part) }
	return g
}

// Close ends probing and settling up, and waits for that; what is still owed to the
// inner store is forgotten. It does not close the inner store. Calls are answered
// afterwards as before, by fallbacks for good if the inner store is being left alone.
func (g *Guard) Close() error {
	g.mu.Lock()
	if !g.closed {
		g.closed = true
		close(g.stop)
	}
	g.mu.Unlock()
	g.cannot.close()
	g.stopped.Wait()
	return nil
}

func (g *Guard) now() time.Duration { return time.Since(g.start) }

func (g *Guard) wall(now time.Duration) time.Time { return g.start.Add(now) }

// Take implements tidegate.Store. The error is nil unless the caller has left or
// asked for what no store would answer. A caller that leaves does not take its
// question back: it may be charged.
func (g *Guard) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	if err := ctx.Err(); err != nil {
		return tidegate.Decision{}, err
	}
	if misused(checks, n) {
		return g.local.Take(ctx, checks, n) // says so
	}
	share := g.share.Load()
	if g.sharer == nil || share < whole {
		return g.takeOrFallBack(ctx, checks, n, share)
	}
	if !g.sharer.Quiet() {
		if d, ok := g.sharer.Denied(checks); ok {
			return d, nil
		}
	}
	d, err := g.takeShared(ctx, checks, n)
	return *d, err
}

// takeShared is Take when all is well.
func (g *Guard) takeShared(ctx context.Context, checks []tidegate.Check, n int) (*tidegate.Decision, error) {
	r := g.current()
	d, err := g.sharer.TakeShared(r.ctx, checks, n)
	if err != nil {
		return g.shared(ctx, checks, n, err, r.from)
	}
	g.count.good.Inc()
	if g.cannot.some.Load() {
		g.cannot.answered(checks)
	}
	g.remember(checks, d, r.from)
	return d, nil
}

// shared is the answer when the inner store, asked about then, has none.
func (g *Guard) shared(ctx context.Context, checks []tidegate.Check, n int, err error, asked time.Duration) (*tidegate.Decision, error) {
	g.judge(err, asked, false)
	d, err := g.instead(ctx, checks, n, err)
	return &d, err
}

// takeOrFallBack is Take of an inner store that may be left alone.
func (g *Guard) takeOrFallBack(ctx context.Context, checks []tidegate.Check, n int, share uint32) (tidegate.Decision, error) {
	now := g.now()
	if share < whole && !g.chosen(checks, share) {
		return g.fallback(checks, n, *g.why.Load(), now)
	}
	d, err := g.take(ctx, checks, n, now)
	if err != nil {
		return g.instead(ctx, checks, n, err)
	}
	if g.cannot.some.Load() {
		g.cannot.answered(checks)
	}
	g.remember(checks, &d, now)
	return d, nil
}

// instead is the answer when the inner store has none.
func (g *Guard) instead(ctx context.Context, checks []tidegate.Check, n int, err error) (tidegate.Decision, error) {
	if ctx.Err() != nil {
		return tidegate.Decision{}, err
	}
	g.cannot.note(checks, err, time.Now())
	return g.fallback(checks, n, err, g.now())
}

// sharer is an inner store that has its answers in memory of its own, and calls nobody on
// the goroutine of its caller. Answers then need not be copied from one layer to the next:
// a caller that waits with hundreds of others is woken with its stack cold, and most of
// its time goes to that.
type sharer interface {
	// Quiet reports that nobody is denied.
	Quiet() bool
	// Denied refuses what TakeShared would, if that is known.
	Denied(checks []tidegate.Check) (tidegate.Decision, bool)
	// TakeShared is Take for an answer that is not to be written to.
	TakeShared(ctx context.Context, checks []tidegate.Check, n int) (*tidegate.Decision, error)
}

// chosen reports whether the request goes to the inner store while that recovers.
// It goes by the key, so that nobody is counted here and there in turns.
func (g *Guard) chosen(checks []tidegate.Check, share uint32) bool {
	if share == 0 || len(checks) == 0 {
		return share > 0
	}
	return uint32(g.seen.hash(checks[0].Key)%whole) < share
}

// misused reports whether every store would return an error for this, and rightly so.
func misused(checks []tidegate.Check, n int) bool {
	for i := range checks {
		c := &checks[i]
		if c.Cost < 0 || c.Limit == nil || c.Limit.Identity() == "" || c.Limit.Algorithm == tidegate.Deny {
			return true
		}
	}
	return n < 1
}
