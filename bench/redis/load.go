package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// mostCallers is the largest number of callers in any race.
const mostCallers = 1024

// sampled is how many decisions go by between two whose time is taken.
const sampled = 64

// load is callers that ask one after the other, each as soon as it has its answer.
type load struct {
	callers int
	drawn   []string              // the keys that are asked about, over and over
	count   func(key string) bool // nil means every key that is admitted is counted
}

// tally is what came of a heat.
type tally struct {
	decisions int64 // those that failed are not among them
	admitted  int64 // of the keys that are counted
	failed    int64
	why       error // of one that failed
	took      time.Duration
	p50, p99  time.Duration
	own       time.Duration // CPU time of this process
	account                 // of Redis
}

func (t *tally) rate() float64 { return float64(t.decisions) / t.took.Seconds() }

// micros returns the CPU time of Redis per decision.
func (t *tally) micros() float64 { return t.cpu.Seconds() * 1e6 / float64(max(1, t.decisions)) }

// ownMicros returns the CPU time of the callers per decision, drawing keys included.
func (t *tally) ownMicros() float64 { return t.own.Seconds() * 1e6 / float64(max(1, t.decisions)) }

// perCall returns how many decisions a call of a script made.
func (t *tally) perCall() float64 { return float64(t.decisions) / float64(max(1, t.calls)) }

// drive asks a limiter for d.
func (l *load) drive(ctx context.Context, lim limiter, d time.Duration) tally {
	var (
		all     tally
		mu      sync.Mutex // over all and times
		times   []time.Duration
		callers sync.WaitGroup
		stop    atomic.Bool
		begin   = make(chan struct{})
	)
	for range l.callers {
		callers.Go(func() {
			// Like a request, each caller has a context that could end.
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			decide, random := lim.caller(), rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
			<-begin
			mine, took := l.call(ctx, &stop, decide, random)
			mu.Lock()
			defer mu.Unlock()
			all.add(mine)
			times = append(times, took...)
		})
	}
	start, own := time.Now(), ownCPU()
	close(begin)
	timer := time.AfterFunc(d, func() { stop.Store(true) })
	defer timer.Stop()
	callers.Wait()
	all.took, all.own = time.Since(start), ownCPU()-own
	slices.Sort(times)
	if n := len(times); n > 0 {
		all.p50, all.p99 = times[n/2], times[n*99/100]
	}
	return all
}

// call makes the calls of one caller until it is stopped.
func (l *load) call(ctx context.Context, stop *atomic.Bool, decide decide, random *rand.Rand) (t tally, times []time.Duration) {
	for i := random.IntN(len(l.drawn)); !stop.Load() && ctx.Err() == nil; i++ {
		key := l.drawn[i%len(l.drawn)]
		timed := i%sampled == 0
		var start time.Time
		if timed {
			start = time.Now()
		}
		ok, err := decide(ctx, key)
		if timed {
			times = append(times, time.Since(start))
		}
		switch {
		case err != nil:
			t.failed, t.why = t.failed+1, err
			continue
		case ok && (l.count == nil || l.count(key)):
			t.admitted++
		}
		t.decisions++
	}
	return t, times
}

func (t *tally) add(o tally) {
	t.decisions, t.admitted, t.failed = t.decisions+o.decisions, t.admitted+o.admitted, t.failed+o.failed
	if o.why != nil {
		t.why = o.why
	}
}

// makeKeys makes all keys once, so that callers do not spend time on it.
func makeKeys(prefix string, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("%s%d", prefix, i)
	}
	return keys
}

// draws is how many keys are drawn before a race, so that drawing them is no part of it.
// Each caller starts somewhere among them.
const draws = 1 << 16

// draw draws them.
func draw(pick func() string) []string {
	drawn := make([]string, draws)
	for i := range drawn {
		drawn[i] = pick()
	}
	return drawn
}

// uniform draws from keys.
func uniform(keys []string) []string {
	return draw(func() string { return keys[rand.IntN(len(keys))] })
}
