// Package registry counts the instances that share the counters. Each instance sends a
// heartbeat every few seconds to a list that all can reach; an instance that has been silent
// for a while is no longer counted.
//
// While the list cannot be reached, the number stays as it was, so that instances keep their
// shares. After an outage the number shrinks only when the list has said so for a while,
// because all instances have to come back first.
//
// Start with [Join].
package registry

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate/internal/chain"
)

// Defaults of Options.
const (
	DefaultEvery = 3 * time.Second
	DefaultTTL   = 10 * time.Second
)

// List lists the instances that send heartbeats.
type List interface {
	// Beat sends a heartbeat, and returns how many instances are live. It may return a
	// Roster together with an error: then only parts of the list have answered.
	Beat(ctx context.Context, h chain.Heartbeat) (chain.Roster, error)
	// Leave removes the instance id.
	Leave(ctx context.Context, id string) error
}

// Options of [Join]. Every field has a default.
type Options struct {
	// Every is about how often a heartbeat is sent; 0 means DefaultEvery.
	Every time.Duration
	// TTL is how long after its last heartbeat an instance still counts. After an outage, the
	// list must say for as long that there are fewer instances before that is believed. 0
	// means DefaultTTL. Calls of the list may take half of Every.
	TTL time.Duration
	// About returns what this instance tells the others about itself, with each beat; nil
	// means nothing.
	About func() string
	// OnClock, unless nil, is called with how the clocks compare, after each heartbeat that
	// was answered, from one goroutine.
	OnClock func(chain.Clock)
	// OnBeat, unless nil, is called with the result of each heartbeat, from one goroutine.
	OnBeat func(err error)
}

// Registry is membership in a fleet. Use [New] or [Join].
type Registry struct {
	list   List
	o      Options
	id     string
	is     atomic.Pointer[membership]
	busy   chan struct{}      // full while a call of the list is under way
	soon   chan struct{}      // full when a beat is due at once
	stop   context.CancelFunc // nil until it joins
	done   sync.WaitGroup
	joined sync.Once
	once   sync.Once
}

// Join returns a Registry of which this process is a member at once.
func Join(list List, o Options) *Registry {
	f := New(list, o)
	f.Join()
	return f
}

// New returns a Registry of which this process is not yet a member.
func New(list List, o Options) *Registry {
	if o.Every <= 0 {
		o.Every = DefaultEvery
	}
	if o.TTL <= 0 {
		o.TTL = DefaultTTL
	}
	f := &Registry{list: list, o: o, id: rand.Text(), busy: make(chan struct{}, 1), soon: make(chan struct{}, 1)}
	f.Assume(1)
	return f
}

// Join sends heartbeats from now on, until Close.
func (f *Registry) Join() {
	f.joined.Do(func() {
		ctx, stop := context.WithCancel(context.Background())
		f.stop = stop
		f.done.Go(func() { f.beat(ctx) })
	})
}

// Beat sends the next heartbeat at once. Call it when Options.About returns something new.
func (f *Registry) Beat() {
	select {
	case f.soon <- struct{}{}:
	default: // it is due already
	}
}

// ID returns the name of this instance in the list, which differs in every process.
func (f *Registry) ID() string { return f.id }

// Size returns how many instances there are, as far as is known: at least this one.
func (f *Registry) Size() int { return f.is.Load().size }

// Membership returns Size and the rank of this instance, from 0, both of the same moment. The
// rank is -1 while it is not known.
func (f *Registry) Membership() (size, rank int) {
	is := f.is.Load()
	return is.size, is.rank
}

// membership is what is known of the instances.
type membership struct{ size, rank int }

// Assume sets how many there are, as a predecessor knew. Call it before Join.
func (f *Registry) Assume(size int) { f.is.Store(&membership{max(size, 1), -1}) }

// Close leaves the list, if that can be reached. It waits for that, at most for half of Every.
func (f *Registry) Close() {
	f.once.Do(func() {
		if f.stop == nil { // it never joined
			return
		}
		f.stop()
		f.done.Wait()
		_ = f.ask(context.Background(), func(ctx context.Context) error { // if it fails, TTL removes this instance
			return f.list.Leave(ctx, f.id)
		})
	})
}

// beat is the goroutine of a Registry: it sends heartbeats until ctx ends.
func (f *Registry) beat(ctx context.Context) {
	known := tally{size: f.Size()}
	start, first := time.Now(), true
	for {
		about := ""
		if f.o.About != nil {
			about = f.o.About()
		}
		var answer atomic.Pointer[chain.Roster]
		err := f.ask(ctx, func(ctx context.Context) error {
			r, err := f.list.Beat(ctx, chain.Heartbeat{ID: f.id, TTL: f.o.TTL, About: about})
			answer.Store(&r)
			return err
		})
		if ctx.Err() != nil {
			return
		}
		var roster chain.Roster // stays empty if there is no answer in time
		if r := answer.Load(); r != nil {
			roster = *r
		}
		known = known.step(roster, err, time.Since(start), f.o.TTL)
		rank := f.is.Load().rank
		if roster.Live > 0 {
			rank = roster.Rank
		}
		f.is.Store(&membership{known.size, rank})
		if f.o.OnClock != nil && roster.Clock.Known() {
			f.o.OnClock(roster.Clock)
		}
		if f.o.OnBeat != nil {
			f.o.OnBeat(err)
		}
		if first && roster.Live > 0 && f.o.About != nil {
			first = false
			f.Beat() // OnClock may have changed what About returns
		}
		// A random pause from Every/2 to Every, so that instances do not beat together.
		timer := time.NewTimer(f.o.Every/2 + mathrand.N(f.o.Every/2+1))
		select {
		case <-timer.C:
		case <-f.soon:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// errSilent is the reason when the list does not answer and does not heed its context.
var errSilent = errors.New("the store does not answer")

// ask calls the list, and stops waiting when the time is up, even if the call does not return.
// It makes no other call before that one has returned.
func (f *Registry) ask(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, f.o.Every/2)
	defer cancel()
	select {
	case f.busy <- struct{}{}:
	case <-ctx.Done():
		return errSilent
	}
	done := make(chan error, 1)
	go func() {
		done <- do(ctx)
		<-f.busy
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errSilent
	}
}
