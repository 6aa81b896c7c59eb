// Package registry counts the instances that share the counters. Each instance sends a
// heartbeat every few seconds to a roll that all can reach; one that has been silent for
// a while is no longer counted.
//
// While the roll cannot be reached, the number stays as it was: instances that lost the
// roll together keep their shares. After an outage the number does not shrink before the
// roll has said so for a while, because all instances have to come back first.
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

// Roll is where instances say that they are there.
type Roll interface {
	// Beat says that an instance is there, and returns how many are. With a number and an
	// error, parts of the roll have not answered and the others have.
	Beat(ctx context.Context, h chain.Heartbeat) (chain.Roster, error)
	// Leave says that id is gone.
	Leave(ctx context.Context, id string) error
}

// Options of [Join]. Every field has a default.
type Options struct {
	// Every is about how often an instance says that it is there; 0 means
	// DefaultEvery.
	Every time.Duration
	// TTL is after how long without a word it is counted no longer, and for how
	// long after an outage the roll must say that there are fewer; 0 means DefaultTTL.
	// Calls of the roll have half of Every.
	TTL time.Duration
	// About returns what this instance tells the others about itself, with each beat; nil
	// means nothing.
	About func() string
	// OnClock is told how the clocks compare, after each beat that was answered, from one
	// goroutine; nil means that nobody is.
	OnClock func(chain.Clock)
	// OnBeat is told how each beat went, from one goroutine; nil means nobody is.
	OnBeat func(err error)
}

// Registry is membership in a fleet. Use [New] or [Join].
type Registry struct {
	roll   Roll
	o      Options
	id     string
	is     atomic.Pointer[membership]
	busy   chan struct{}      // full while a call of the roll is under way
	soon   chan struct{}      // full when a beat is due at once
	stop   context.CancelFunc // nil until it joins
	done   sync.WaitGroup
	joined sync.Once
	once   sync.Once
}

// Join is New, and says at once that this process is there.
func Join(roll Roll, o Options) *Registry {
	f := New(roll, o)
	f.Join()
	return f
}

// New returns a Registry of which this process is not yet a member.
func New(roll Roll, o Options) *Registry {
	if o.Every <= 0 {
		o.Every = DefaultEvery
	}
	if o.TTL <= 0 {
		o.TTL = DefaultTTL
	}
	f := &Registry{roll: roll, o: o, id: rand.Text(), busy: make(chan struct{}, 1), soon: make(chan struct{}, 1)}
	f.Assume(1)
	return f
}

// Join says that this process is there, from now on until Close.
func (f *Registry) Join() {
	f.joined.Do(func() {
		ctx, stop := context.WithCancel(context.Background())
		f.stop = stop
		f.done.Go(func() { f.beat(ctx) })
	})
}

// Beat has the next beat sent at once: what this instance tells about itself has changed.
func (f *Registry) Beat() {
	select {
	case f.soon <- struct{}{}:
	default: // it is due already
	}
}

// ID is the name of this instance in the roll, another one in every process.
func (f *Registry) ID() string { return f.id }

// Size is how many instances there are, as far as is known: at least this one.
func (f *Registry) Size() int { return f.is.Load().size }

// Membership is Size, and the rank of this instance among them, from 0 on, by one look; -1
// while the roll has not said it.
func (f *Registry) Membership() (size, rank int) {
	is := f.is.Load()
	return is.size, is.rank
}

// membership is what is known of the instances.
type membership struct{ size, rank int }

// Assume says how many there are, before Join: a predecessor knew.
func (f *Registry) Assume(size int) { f.is.Store(&membership{max(size, 1), -1}) }

// Close leaves the roll, if that can be reached, and returns when it is done, after
// half of Every at the latest.
func (f *Registry) Close() {
	f.once.Do(func() {
		if f.stop == nil { // it never joined
			return
		}
		f.stop()
		f.done.Wait()
		_ = f.ask(context.Background(), func(ctx context.Context) error { // else it is missed after a while
			return f.roll.Leave(ctx, f.id)
		})
	})
}

// beat is the goroutine of a Registry.
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
			r, err := f.roll.Beat(ctx, chain.Heartbeat{ID: f.id, TTL: f.o.TTL, About: about})
			answer.Store(&r)
			return err
		})
		if ctx.Err() != nil {
			return
		}
		var roster chain.Roster // of nobody if nothing was answered in time
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
			f.Beat() // what the answer has shown is to be told, too
		}
		// Between half of it and it, so that instances do not beat together.
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

// errSilent is the reason when the roll does not answer and does not heed its context.
var errSilent = errors.New("the roll does not answer")

// ask calls the roll and leaves it behind when time is up, whatever it does; it is not
// called again before it has returned.
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
