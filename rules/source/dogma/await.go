package dogma

import (
	"context"
	"sync"
	"time"

	"tidegate.dev/tidegate/internal/lang/sleep"
)

// await returns the revision in which a file has changed since was; 0 if none has within the wait
// that the server is asked for.
func (s *Source) await(caller context.Context, was *snapshot) (revision int, err error) {
	ctx, cancel := context.WithCancel(caller)
	defer cancel()
	var once sync.Once
	tell := func(r int, e error) {
		once.Do(func() { revision, err = r, e })
		cancel()
	}
	until := time.Now().Add(s.o.Wait)
	var all sync.WaitGroup
	for _, w := range was.toWatch() {
		all.Go(func() { s.follow(ctx, was, w, until, tell) })
	}
	all.Wait()
	if revision == 0 && err == nil {
		err = caller.Err()
	}
	return revision, err
}

// follow watches a file, or those that match a pattern, and calls tell with the result.
func (s *Source) follow(ctx context.Context, was *snapshot, w wanted, until time.Time, tell func(int, error)) {
	for time.Until(until) > 0 {
		is, took, err := s.watch(ctx, s.folder+w.name, was.revision, time.Until(until), !w.missing && !w.pattern)
		switch {
		case ctx.Err() != nil:
			return
		case missing(err) && !w.missing && w.name != s.main: // it was removed
			var newer int
			if newer, err = s.head(ctx); err == nil {
				tell(max(newer, was.revision+1), nil)
				return
			}
		}
		if err != nil || is != nil && is.Revision > was.revision {
			tell(revisionOf(is), err)
			return
		}
		if took < s.pace.poll && sleep.For(ctx, min(s.pace.poll-took, time.Until(until))) != nil {
			return
		}
	}
}

func revisionOf(w *watched) int {
	if w == nil {
		return 0
	}
	return w.Revision
}
