// Package offenders keeps short lists of who is limited, for operators: for each rule the keys
// that are refused most, that ask most, and that come nearest to their limit, over the last
// minute and the last ten. It is not for counting: metrics do that, and exactly.
//
// The lists are Space-Saving sketches over slices of time. All of them together have a fixed
// number of entries, which lists share fairly, so that a flood in one rule costs the lists of
// others nothing. Each count comes with the bounds between which the true one is. Up to
// [ExactRate] decisions a second are all looked at; beyond that, decisions of the busiest rules
// are sampled, refusals apart from admissions, and the bounds are wider by what that can be
// wrong by.
//
// Start with [New], hand [Offenders.Observe] to a Gate, and ask [Offenders.Snapshot].
package offenders

import (
	"hash/maphash"
	"sync"
	"time"

	"tidegate.dev/tidegate"
)

// Options of [New].
type Options struct {
	// Subject returns who is counted under a limit by a key, as operators may see it; nil
	// shows the parts of the key as they are.
	Subject func(l *tidegate.Limit, key string) []Part
	// Node is the name of this process in a fleet.
	Node string
}

// Offenders has the lists. Use [New]. All methods may be called by many goroutines at once.
type Offenders struct {
	table rules
	draw  func() uint32 // returns a random number, in tests; nil is draw.Uint32

	o       Options
	started time.Time
	stop    func()
	stopped chan struct{}

	mu sync.Mutex
	// What follows is guarded by mu, and so is all of a rule that is not atomic.
	seed   maphash.Seed
	now    slice
	pool   pool
	budget budget
	looked uint64 // decisions looked at
}

// New returns empty lists, and starts a goroutine that Close ends.
func New(o Options) *Offenders {
	if o.Subject == nil {
		o.Subject = plainSubject
	}
	stop := make(chan struct{})
	of := &Offenders{
		o: o, started: time.Now(), seed: maphash.MakeSeed(), now: firstSlice,
		stop: sync.OnceFunc(func() { close(stop) }), stopped: make(chan struct{}),
	}
	of.table.all.Store(&map[string]*Rule{})
	of.budget.reset()
	go of.run(stop)
	return of
}

// Close stops the clock of the lists. It may be called more than once.
func (of *Offenders) Close() {
	of.stop()
	<-of.stopped
}

// run calls tick until stop is closed.
func (of *Offenders) run(stop <-chan struct{}) {
	defer close(of.stopped)
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			of.tick()
		}
	}
}

// tick adapts the sampling to what was seen, and moves on to the next slice of time when it has
// come.
func (of *Offenders) tick() {
	of.mu.Lock()
	of.adapt()
	before := of.now
	of.now = sliceAt(time.Since(of.started))
	moved := of.now != before
	of.mu.Unlock()
	if !moved {
		return
	}
	for _, r := range *of.table.all.Load() {
		of.mu.Lock() // for one rule at a time, so that requests do not wait for all
		of.advance(r)
		of.mu.Unlock()
	}
}

// SetRules announces the rules in force: lists of rules that were announced before, and no longer
// are, are dropped. What belongs to no file, such as bans and limits that callers bring along, is
// never announced, and stays.
func (of *Offenders) SetRules(names []string) {
	of.mu.Lock()
	defer of.mu.Unlock()
	known := make(map[string]struct{}, len(names))
	for _, name := range names {
		known[name] = struct{}{}
	}
	before := *of.table.all.Load()
	after := make(map[string]*Rule, len(before))
	for name, r := range before {
		_, announced := known[name]
		if r.announced && !announced {
			of.drop(r)
			continue
		}
		r.announced = announced
		after[name] = r
	}
	of.table.announced = known
	of.table.replace(after)
}

// drop frees everything that a rule has.
func (of *Offenders) drop(r *Rule) {
	r.gone = true
	for i, l := range r.lists {
		if l != nil {
			of.pool.release(l)
			r.lists[i] = nil
		}
	}
}
