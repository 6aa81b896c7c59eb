package cluster

import (
	"context"
	"slices"

	"tidegate.dev/tidegate"
)

// watch ends the waiting of those in a flight whose contexts end together, so that each of
// them waits for one channel: to wait for one of two costs twice as much, which is a
// large part of what a request for a busy key costs at all. Under internal/guard, all who
// come within some milliseconds have contexts that end together.
type watch struct {
	ctx    context.Context // of one of them
	done   <-chan struct{} // of all of them
	lane   *lane
	flight *flight // under lane.mu; nil: it has ended
	stop   func() bool
}

// watchLocked is the watch for a caller that joins f; nil: it has to look for itself.
// There is one when the caller before had the same end.
func (f *flight) watchLocked(ctx context.Context) *watch {
	done := ctx.Done()
	if w := f.watch; w != nil && w.done == done {
		return w
	}
	if done == nil || f.ends != done {
		f.ends = done
		return nil
	}
	w := &watch{ctx: ctx, done: done, lane: f.lane, flight: f}
	w.stop = context.AfterFunc(ctx, w.end)
	f.watch, f.watches = w, append(f.watches, w)
	return w
}

// end answers for all who are watched that their contexts have ended.
func (w *watch) end() {
	w.lane.mu.Lock()
	told := new(line)
	if f := w.flight; f != nil {
		w.endLocked(told)
		if f.overdue() {
			f.unlistLocked()
		}
	}
	w.lane.mu.Unlock()
	told.wake()
}

func (w *watch) endLocked(told *line) {
	f := w.flight
	w.flight = nil
	f.watches = slices.DeleteFunc(f.watches, func(o *watch) bool { return o == w })
	if f.watch == w {
		f.watch = nil
	}
	for i := range f.lines {
		for one := f.lines[i].first; one != nil; {
			behind := one.behind
			if one.watch == w {
				one.d, one.err = tidegate.Decision{}, w.ctx.Err()
				told.take(one)
			}
			one = behind
		}
	}
}

// unwatchLocked ends the watches of a flight in which nobody waits.
func (f *flight) unwatchLocked() {
	for _, w := range f.watches {
		w.flight = nil
		w.stop()
	}
	clear(f.watches)
	f.watch, f.watches, f.ends = nil, f.watches[:0], nil
}
