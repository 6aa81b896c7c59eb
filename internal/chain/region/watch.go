package region

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate/internal/chain"
)

// Watch knows when other regions were last heard of, as their Syncers told the store of this one. Use
// [NewWatch].
type Watch struct {
	store  chain.Regions
	start  time.Time
	others []watched
	cutOff atomic.Bool
	stop   context.CancelFunc
	done   sync.WaitGroup
}

// watched is one region.
type watched struct {
	name  string
	until atomic.Int64 // its counts up to this time are known here, in ns since start
	heard atomic.Bool  // it was ever heard of
	last  time.Time    // Regions.Heard at the last look, by the clock of the store; only look uses it
}

// Status is how far behind the counts of a region are here.
type Status struct {
	Name string
	// Lag is the age of the oldest count that may be missing here.
	Lag time.Duration
	// Heard: the store knows when it last heard of the region; otherwise Lag counts from NewWatch.
	Heard bool
	// CutOff: it was not heard of for PartitionAfter.
	CutOff bool
}

// watchEvery is how often the store is asked.
const watchEvery = 500 * time.Millisecond

// NewWatch begins to watch. Close it at the end.
func NewWatch(store chain.Regions, others []string) *Watch {
	ctx, stop := context.WithCancel(context.Background())
	w := &Watch{store: store, start: time.Now(), others: make([]watched, len(others)), stop: stop}
	for i, name := range others {
		w.others[i].name = name
	}
	w.done.Go(func() { w.run(ctx) })
	return w
}

// Close ends the watch.
func (w *Watch) Close() {
	w.stop()
	w.done.Wait()
}

func (w *Watch) run(ctx context.Context) {
	for ctx.Err() == nil {
		w.look(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(watchEvery):
		}
	}
}

// look asks the store. If there is no answer, Lag grows.
func (w *Watch) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, watchEvery)
	defer cancel()
	asked := time.Since(w.start)
	at, now, err := w.store.Heard(ctx)
	cutOff := false
	for i := range w.others {
		one := &w.others[i]
		// An unchanged time says nothing new, even if the clock of the store was set.
		if heard, ok := at[one.name]; err == nil && ok && !heard.Equal(one.last) {
			until := int64(asked - max(now.Sub(heard), 0)) // may be before the start
			if one.heard.Load() {
				until = max(until, one.until.Load())
			}
			one.last = heard
			one.until.Store(until)
			one.heard.Store(true)
		}
		cutOff = cutOff || w.status(one).CutOff
	}
	w.cutOff.Store(cutOff)
}

// CutOff reports whether there is a region that has not been heard of for PartitionAfter.
func (w *Watch) CutOff() bool { return w.cutOff.Load() }

// All returns the status of each region.
func (w *Watch) All() []Status {
	all := make([]Status, len(w.others))
	for i := range w.others {
		all[i] = w.status(&w.others[i])
	}
	return all
}

func (w *Watch) status(one *watched) Status {
	lag := time.Since(w.start) - time.Duration(one.until.Load())
	return Status{Name: one.name, Lag: lag, Heard: one.heard.Load(), CutOff: lag > PartitionAfter}
}
