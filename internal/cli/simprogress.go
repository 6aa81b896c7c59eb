package cli

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// simProgress shows on stderr how far a simulation is. It has a goroutine of its own, since
// those of the simulation see another time.
type simProgress struct {
	sum  atomic.Int64
	what atomic.Pointer[string]
	stop chan struct{}
	once sync.Once
	done sync.WaitGroup
}

func newSimProgress(env Env) *simProgress {
	p := &simProgress{stop: make(chan struct{})}
	p.at("")
	p.done.Go(func() {
		began, wrote := time.Now(), false
		ticks := time.NewTicker(time.Second)
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
				wrote = true
				fmt.Fprintf(env.Stderr, "\rsim: %s: %d decisions in %.0f s ", *p.what.Load(), p.sum.Load(), time.Since(began).Seconds())
			case <-p.stop:
				if wrote {
					fmt.Fprintln(env.Stderr)
				}
				return
			}
		}
	})
	return p
}

func (p *simProgress) at(what string) { p.what.Store(&what) }

// add counts decisions.
func (p *simProgress) add(decisions int64) { p.sum.Add(decisions) }

func (p *simProgress) end() {
	p.once.Do(func() { close(p.stop) })
	p.done.Wait()
}
