package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

// Times of a feed.
const (
	firstRetry = 200 * time.Millisecond // after a failure, doubled by each further one
	lastRetry  = 10 * time.Second
	shortest   = 200 * time.Millisecond // between two questions that changed nothing
	grace      = 2 * time.Second        // for an origin to return after its context has ended
	overdue    = 30 * time.Second       // beyond the wait of a long poll, until an origin counts as silent
)

// feed follows an Origin, and keeps its newest bundle. Its goroutine alone asks the origin.
type feed struct {
	name    string
	origin  Origin
	log     *slog.Logger
	silence time.Duration // of an origin before it counts as an error
	arrived func()        // called when there is another newest bundle
	wake    chan struct{} // somebody wants the origin to be asked now
	tried   chan struct{} // closed after the first answer or error
	done    chan struct{}
	once    sync.Once // of tried

	mu      sync.Mutex
	kept    *Bundle   // a copy of what was in force before; nil: none. Set before run
	newest  *Bundle   // under mu; nil: none yet
	copied  bool      // under mu; newest is a copy from disk
	reached time.Time // under mu
	err     error     // under mu
	since   time.Time // of err; under mu
}

func newFeed(l Layer, o *Options, arrived func()) *feed {
	return &feed{
		name: l.name(), origin: l.Origin, log: o.Log, silence: o.Wait + overdue, arrived: arrived,
		wake: make(chan struct{}, 1), tried: make(chan struct{}), done: make(chan struct{}),
	}
}

// run asks until ctx ends.
func (f *feed) run(ctx context.Context) {
	defer close(f.done)
	retry, told := firstRetry, false
	// unsure: the origin failed, or what it has was not taken. It is asked for all of it again,
	// which it answers at once, while it may wait long before it says that there is nothing new.
	unsure := false
	for ctx.Err() == nil {
		start := time.Now()
		have := ""
		if b, copied := f.now(); b != nil && !copied && !told && !unsure {
			have = b.Revision
		}
		answer := f.ask(ctx, have)
		if ctx.Err() != nil {
			return
		}
		if answer.err == nil && answer.bundle != nil {
			answer.err = f.take(answer.bundle, told)
		}
		unsure = answer.err != nil || unsure && answer.bundle == nil
		changed := answer.err == nil && answer.bundle != nil && answer.bundle.Revision != have
		told = answer.told
		pause := time.Duration(0)
		switch {
		case told:
			retry = firstRetry
		case answer.err != nil:
			f.failed(answer.err)
			pause, retry = jittered(retry), min(2*retry, lastRetry)
		default:
			f.answered()
			retry = firstRetry
			if !changed {
				pause = shortest - time.Since(start)
			}
		}
		if pause > 0 && f.sleep(ctx, pause) {
			told, retry = true, firstRetry
		}
	}
}

// jittered is a time from d/2 to d, so that a fleet does not come back all at once.
func jittered(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// sleep reports whether it was woken early.
func (f *feed) sleep(ctx context.Context, d time.Duration) (woken bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case <-f.wake:
		return true
	}
	return false
}

// answer is what an origin said; told: somebody wants it to be asked again at once.
type answer struct {
	bundle *Bundle
	err    error
	told   bool
}

// ask asks the origin once. One that does not answer is an error at once, and is asked again
// only when it has returned.
func (f *feed) ask(ctx context.Context, have string) answer {
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	result := make(chan answer, 1)
	go func() {
		b, err := f.origin.Next(asking, have)
		result <- answer{bundle: b, err: err}
	}()
	silent := time.NewTimer(f.silence)
	defer silent.Stop()
	var told, late bool
	for {
		select {
		case a := <-result:
			if (told || late) && a.err != nil {
				a.err = nil // we have ended the call ourselves
				if late {
					a.err = f.silent()
				}
			}
			a.told = told && a.bundle == nil
			return a
		case <-silent.C:
			late = true
			f.failed(f.silent())
			cancel()
		case <-f.wake:
			told = true
			cancel()
		case <-ctx.Done():
			select {
			case <-result:
			case <-time.After(grace):
				f.log.Warn("a source of rules does not end its call: it is left behind", "source", f.name)
			}
			return answer{err: ctx.Err()}
		}
	}
}

func (f *feed) silent() error {
	return fmt.Errorf("it has not answered within %s", f.silence)
}

// take makes b the newest, unless it cannot be: told takes also what is older.
func (f *feed) take(b *Bundle, told bool) error {
	if err := b.Check(); err != nil {
		return fmt.Errorf("what it has as revision %q cannot be used: %w", b.Revision, err)
	}
	f.mu.Lock()
	was := cmp.Or(f.newest, f.kept)
	switch {
	case was == nil || told || b.sameFiles(was):
	case b.Revision == was.Revision && !b.At.After(was.At):
		f.mu.Unlock()
		return fmt.Errorf("it has other files as revision %q than before: publish them as another revision, or reload", b.Revision)
	case b.olderThan(was):
		f.mu.Unlock()
		return fmt.Errorf("it went back from revision %s to %s, which is not newer: publish again what is to hold, or reload", was.Revision, b.Revision)
	}
	was = f.newest
	other := was == nil || f.copied || was.Edition != b.Edition || !b.sameFiles(was)
	if other {
		f.newest, f.copied = b, false
	}
	f.mu.Unlock()
	if other {
		f.arrived()
	}
	return nil
}

func (f *feed) answered() {
	f.mu.Lock()
	was := f.err
	f.reached, f.err, f.since = time.Now(), nil, time.Time{}
	f.mu.Unlock()
	f.once.Do(func() { close(f.tried) })
	if was != nil {
		f.log.Info("a source of rules answers again", "source", f.name)
	}
}

func (f *feed) failed(err error) {
	f.mu.Lock()
	was := f.err
	if f.err = err; was == nil {
		f.since = time.Now()
	}
	f.mu.Unlock()
	f.once.Do(func() { close(f.tried) })
	if was == nil || was.Error() != err.Error() {
		f.log.Error("a source of rules cannot be followed: the rules in force stay", "source", f.name, "err", err)
	}
}

// now is the newest bundle, and whether it is a copy.
func (f *feed) now() (b *Bundle, copied bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.newest, f.copied
}

// useCopy makes the copy the newest until the source has one.
func (f *feed) useCopy() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.newest == nil && f.kept != nil {
		f.newest, f.copied = f.kept, true
	}
}

// copyOrNow is the copy, or the newest where there is none.
func (f *feed) copyOrNow() (b *Bundle, copied bool) {
	if f.kept != nil {
		return f.kept, true
	}
	return f.now()
}

// askSoon has the origin asked for what it has, whatever is known.
func (f *feed) askSoon() {
	select {
	case f.wake <- struct{}{}:
	default: // it is about to be done
	}
}

// show fills in what is known of the source.
func (f *feed) show(s *LayerStatus) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.Origin, s.Reached, s.ErrorSince = true, f.reached, f.since
	if f.err != nil {
		s.Error = f.err.Error()
	}
}

// missing is why there is no bundle.
func (f *feed) missing() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.err
	}
	return errors.New("it has not answered yet")
}
