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

// Times of a poller.
const (
	firstRetry = 200 * time.Millisecond // after a failure; doubled by each further one
	lastRetry  = 10 * time.Second
	shortest   = 200 * time.Millisecond // between two requests without a change
	grace      = 2 * time.Second        // for an origin to return after its context has ended
	overdue    = 30 * time.Second       // how long after the wait of a long poll an origin counts as silent
)

// poller polls an Origin and keeps its newest bundle. Only its goroutine uses the origin.
type poller struct {
	name    string
	origin  Origin
	log     *slog.Logger
	silence time.Duration // of an origin before it counts as an error
	arrived func()        // called when the newest bundle changes
	wake    chan struct{} // makes it ask the origin now
	tried   chan struct{} // closed after the first answer or error
	done    chan struct{}
	once    sync.Once // of tried

	mu      sync.Mutex
	kept    *Bundle   // a copy of what was in force before; nil means none. Set before run
	newest  *Bundle   // under mu; nil means none yet
	copied  bool      // under mu; newest is a copy from disk
	reached time.Time // when the origin last answered; under mu
	err     error     // under mu
	since   time.Time // of err; under mu
}

func newPoller(l Layer, o *Options, arrived func()) *poller {
	return &poller{
		name: l.name(), origin: l.Origin, log: o.Log, silence: o.Wait + overdue, arrived: arrived,
		wake: make(chan struct{}, 1), tried: make(chan struct{}), done: make(chan struct{}),
	}
}

// run polls until ctx ends.
func (p *poller) run(ctx context.Context) {
	defer close(p.done)
	retry, told := firstRetry, false
	// unsure: the origin failed, or its bundle was not accepted. It is asked without a revision,
	// and answers at once; otherwise it may wait long before it says that there is nothing new.
	unsure := false
	for ctx.Err() == nil {
		start := time.Now()
		have := ""
		if b, copied := p.now(); b != nil && !copied && !told && !unsure {
			have = b.Revision
		}
		answer := p.ask(ctx, have)
		if ctx.Err() != nil {
			return
		}
		if answer.err == nil && answer.bundle != nil {
			answer.err = p.take(answer.bundle, told)
		}
		unsure = answer.err != nil || unsure && answer.bundle == nil
		changed := answer.err == nil && answer.bundle != nil && answer.bundle.Revision != have
		told = answer.told
		pause := time.Duration(0)
		switch {
		case told:
			retry = firstRetry
		case answer.err != nil:
			p.failed(answer.err)
			pause, retry = jittered(retry), min(2*retry, lastRetry)
		default:
			p.answered()
			retry = firstRetry
			if !changed {
				pause = shortest - time.Since(start)
			}
		}
		if pause > 0 && p.sleep(ctx, pause) {
			told, retry = true, firstRetry
		}
	}
}

// jittered returns a duration from d/2 to d, so that a fleet does not retry all at once.
func jittered(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// sleep waits, and reports whether it was woken early.
func (p *poller) sleep(ctx context.Context, d time.Duration) (woken bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case <-p.wake:
		return true
	}
	return false
}

// answer is the answer of an origin; told: the poller was woken to ask again.
type answer struct {
	bundle *Bundle
	err    error
	told   bool
}

// ask asks the origin once. If the origin does not return in time, that is an error, and it is
// asked again only when it has returned.
func (p *poller) ask(ctx context.Context, have string) answer {
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	result := make(chan answer, 1)
	go func() {
		b, err := p.origin.Next(asking, have)
		result <- answer{bundle: b, err: err}
	}()
	silent := time.NewTimer(p.silence)
	defer silent.Stop()
	var told, late bool
	for {
		select {
		case a := <-result:
			if (told || late) && a.err != nil {
				a.err = nil // ask itself has ended the call
				if late {
					a.err = p.silent()
				}
			}
			a.told = told && a.bundle == nil
			return a
		case <-silent.C:
			late = true
			p.failed(p.silent())
			cancel()
		case <-p.wake:
			told = true
			cancel()
		case <-ctx.Done():
			select {
			case <-result:
			case <-time.After(grace):
				p.log.Warn("a source of rules does not return when it is told to stop: it is abandoned", "source", p.name)
			}
			return answer{err: ctx.Err()}
		}
	}
}

func (p *poller) silent() error {
	return fmt.Errorf("it has not answered within %s", p.silence)
}

// take makes b the newest bundle. It rejects an older revision, or other files under the same one,
// unless told is set.
func (p *poller) take(b *Bundle, told bool) error {
	if err := b.Check(); err != nil {
		return fmt.Errorf("what it has as revision %q cannot be used: %w", b.Revision, err)
	}
	p.mu.Lock()
	was := cmp.Or(p.newest, p.kept)
	switch {
	case was == nil || told || b.sameFiles(was):
	case b.Revision == was.Revision && !b.At.After(was.At):
		p.mu.Unlock()
		return fmt.Errorf("it has other files as revision %q than before: publish them as another revision, or reload", b.Revision)
	case b.olderThan(was):
		p.mu.Unlock()
		return fmt.Errorf("it went back from revision %s to %s, which is not newer: publish again what should be in force, or reload", was.Revision, b.Revision)
	}
	was = p.newest
	other := was == nil || p.copied || was.Edition != b.Edition || !b.sameFiles(was)
	if other {
		p.newest, p.copied = b, false
	}
	p.mu.Unlock()
	if other {
		p.arrived()
	}
	return nil
}

func (p *poller) answered() {
	p.mu.Lock()
	was := p.err
	p.reached, p.err, p.since = time.Now(), nil, time.Time{}
	p.mu.Unlock()
	p.once.Do(func() { close(p.tried) })
	if was != nil {
		p.log.Info("a source of rules answers again", "source", p.name)
	}
}

func (p *poller) failed(err error) {
	p.mu.Lock()
	was := p.err
	if p.err = err; was == nil {
		p.since = time.Now()
	}
	p.mu.Unlock()
	p.once.Do(func() { close(p.tried) })
	if was == nil || was.Error() != err.Error() {
		p.log.Error("a source of rules cannot be followed: the rules in force stay", "source", p.name, "err", err)
	}
}

// now returns the newest bundle, and whether it is a copy.
func (p *poller) now() (b *Bundle, copied bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.newest, p.copied
}

// useCopy makes the copy the newest bundle until the source has one.
func (p *poller) useCopy() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.newest == nil && p.kept != nil {
		p.newest, p.copied = p.kept, true
	}
}

// copyOrNow returns the copy or, without one, the newest bundle.
func (p *poller) copyOrNow() (b *Bundle, copied bool) {
	if p.kept != nil {
		return p.kept, true
	}
	return p.now()
}

// askSoon makes the poller ask the origin for its bundle, even if nothing has changed.
func (p *poller) askSoon() {
	select {
	case p.wake <- struct{}{}:
	default: // it is about to be done
	}
}

// show fills in the status of the source.
func (p *poller) show(s *LayerStatus) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.Origin, s.Reached, s.ErrorSince = true, p.reached, p.since
	if o, ok := p.origin.(Answering); ok {
		if at := o.Answered(); at.After(s.Reached) {
			s.Reached = at
		}
	}
	if p.err != nil {
		s.Error = p.err.Error()
	}
}

// missing returns why there is no bundle.
func (p *poller) missing() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return p.err
	}
	return errors.New("it has not answered yet")
}
