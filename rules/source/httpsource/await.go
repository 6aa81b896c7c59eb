package httpsource

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"tidegate.dev/tidegate/internal/lang/sleep"
	"tidegate.dev/tidegate/rules/source/feed"
)

// await returns a file that has changed since was; nil if nothing has for as long as the server
// is asked to wait.
func (s *Source) await(caller context.Context, was *snapshot) (fresh *file, err error) {
	ctx, cancel := context.WithCancel(caller)
	defer cancel()
	var once sync.Once
	tell := func(f *file, e error) {
		once.Do(func() { fresh, err = f, e })
		cancel()
	}
	until := time.Now().Add(s.o.Wait)
	long, rest := s.divide(slices.Sorted(maps.Keys(was.files)))
	var all sync.WaitGroup
	for _, name := range long {
		all.Go(func() { s.watch(ctx, was, name, until, tell) })
	}
	if len(rest) > 0 {
		all.Go(func() { s.sweep(ctx, was, rest, until, tell) })
	}
	if s.o.Report != nil {
		all.Go(func() { s.report(ctx, was, until, tell) })
	}
	all.Wait()
	if fresh == nil && err == nil {
		err = caller.Err()
	}
	return fresh, err
}

// report tells the server which rules this instance applies whenever that differs from what it was
// told: a long poll may have begun before the last bundle was put into force.
func (s *Source) report(ctx context.Context, was *snapshot, until time.Time, tell func(*file, error)) {
	for sleep.For(ctx, min(s.pace.poll/4, time.Until(until))) == nil && time.Until(until) > 0 {
		if s.o.Report() == s.told() {
			continue
		}
		if _, same := s.look(ctx, was, s.main, 0, tell); !same {
			return
		}
	}
}

// told returns what the server was told last.
func (s *Source) told() feed.Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reported
}

// divide returns which files are watched by a long poll each, the main one among them, and which
// are asked for in turn.
func (s *Source) divide(names []string) (long, rest []string) {
	if len(names) <= parallel {
		return names, nil
	}
	return []string{s.main}, slices.DeleteFunc(names, func(n string) bool { return n == s.main })
}

// watch asks for one file again and again, with a long poll.
func (s *Source) watch(ctx context.Context, was *snapshot, name string, until time.Time, tell func(*file, error)) {
	for time.Until(until) > 0 {
		pause, same := s.look(ctx, was, name, time.Until(until), tell)
		if !same || sleep.For(ctx, min(pause, time.Until(until))) != nil {
			return
		}
	}
}

// look asks for a file, and calls tell if it has changed or cannot be fetched; same reports that
// neither is so, and that ctx has not ended.
func (s *Source) look(ctx context.Context, was *snapshot, name string, wait time.Duration, tell func(*file, error)) (pause time.Duration, same bool) {
	before := was.file(name)
	is, pause, err := s.fetch(ctx, name, before, wait)
	switch {
	case ctx.Err() != nil:
		return 0, false
	case err != nil || !is.same(before):
		tell(is, err)
		return 0, false
	}
	was.again(is, before)
	s.mu.Lock()
	s.answered = time.Now()
	s.mu.Unlock()
	return pause, true
}

// sweep asks for many files in turn, at most a hundred in a second and each once in a second.
func (s *Source) sweep(ctx context.Context, was *snapshot, names []string, until time.Time, tell func(*file, error)) {
	for time.Until(until) > 0 {
		start := time.Now()
		for _, name := range names {
			if _, same := s.look(ctx, was, name, 0, tell); !same || sleep.For(ctx, s.pace.poll/100) != nil {
				return
			}
		}
		if sleep.For(ctx, min(s.pace.poll-time.Since(start), time.Until(until))) != nil {
			return
		}
	}
}

// same reports whether both are the same file.
func (f *file) same(other *file) bool { return f.missing == other.missing && f.sum == other.sum }
