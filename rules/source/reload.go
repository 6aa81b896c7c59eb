package source

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"tidegate.dev/tidegate/internal/lang/bounded"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// pace is how long the reloader waits for what. A change holds within poll +
// quiet + settle and the time it takes to load, whether the kernel tells or not.
type pace struct {
	poll       time.Duration // between two looks at the files
	quiet      time.Duration // without a further change, before a reload
	most       time.Duration // that changes in a row can put it off
	settle     time.Duration // that something doubtful has to stay as it is
	badTimeout time.Duration // with something that is bad and keeps changing
	silent     bool          // the kernel is not asked
}

var usual = pace{
	poll:       400 * time.Millisecond,
	quiet:      75 * time.Millisecond,
	most:       500 * time.Millisecond,
	settle:     150 * time.Millisecond,
	badTimeout: 2 * time.Second,
}

// reloader follows the files below a name, and puts into force what loads. It
// knows nothing of rules and keys: load reads them all through the view, and says how to
// put them into force, or why they are no good.
type reloader struct {
	name     string
	what     string // "rules", for the log
	load     func(*view) (enforce func(), err error)
	open     func(string) ([]byte, error) // nil: from disk
	secret   string                       // a file that has no part in the hash
	onReload func()                       // called when the status shows it, but not of the first load
	onError  func(error)
	log      *slog.Logger
	pace     pace
	notifier *notifier
	again    chan struct{} // somebody wants the files to be read now
	stop     context.CancelFunc
	done     chan struct{}

	// Of the goroutine.
	last     reading   // the latest
	force    *view     // what is in force was read from
	pending  bool      // last is doubtful, and waits to be looked at again
	doubtful time.Time // since when there is no clear answer; zero: there is one

	mu     sync.Mutex
	status Status // under mu
	err    error  // under mu; why what is in the files is not in force
}

// reading is the outcome of a load.
type reading struct {
	view    *view
	enforce func()
	err     error
	at      time.Time
}

// start loads for the first time; if that fails, nothing is running.
func (r *reloader) start(ctx context.Context) error {
	if r.open == nil {
		r.open = bounded.Files(rulefile.MaxBytes)
	}
	r.last = r.readAll()
	if r.last.err != nil {
		return r.last.err
	}
	r.notifier = newNotifier(r.log, !r.pace.silent)
	r.follow()
	r.enforce()
	ctx, r.stop = context.WithCancel(ctx)
	r.done, r.again = make(chan struct{}), make(chan struct{}, 1)
	go r.run(ctx)
	return nil
}

// readSoon has the files read even if nothing tells that they changed.
func (r *reloader) readSoon() {
	select {
	case r.again <- struct{}{}:
	default: // it is about to be done
	}
}

// close stops the goroutine and waits until it has.
func (r *reloader) close() {
	r.stop()
	<-r.done
}

func (r *reloader) run(ctx context.Context) {
	defer close(r.done)
	defer r.notifier.close()
	defer r.stop()
	poll := time.NewTicker(r.pace.poll)
	defer poll.Stop()
	due := time.NewTimer(time.Hour)
	due.Stop()
	defer due.Stop()
	var first time.Time // change of those that are waited out
	stir := func() {
		now := time.Now()
		if first.IsZero() {
			first = now
		}
		due.Reset(min(r.pace.quiet, first.Add(r.pace.most).Sub(now)))
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.notifier.events():
			stir()
		case err := <-r.notifier.errors():
			r.notifier.failed(err)
			stir()
		case <-r.again:
			first = time.Time{}
			due.Stop()
			r.readNow()
		case <-poll.C:
			if first.IsZero() && r.stirred() {
				stir()
			}
		case <-due.C:
			first = time.Time{}
			if again := r.step(time.Now()); again > 0 {
				due.Reset(again)
			}
		}
	}
}

// stirred reports whether the files differ from what was read last.
func (r *reloader) stirred() bool {
	changed, moved := r.last.view.changed()
	if !changed && (moved || r.notifier.lost()) {
		r.follow()
	}
	return changed
}

// step does what is to be done about the files as they are now. again: look once
// more after that long.
func (r *reloader) step(now time.Time) (again time.Duration) {
	if r.stirred() {
		r.last = r.readAll()
		r.follow()
		r.pending = r.last.err != nil || r.last.view.lacks(r.force)
		switch {
		case !r.pending:
			r.doubtful = time.Time{}
		case r.doubtful.IsZero():
			r.doubtful = now
		}
		if r.pending && now.Sub(r.doubtful) < r.pace.badTimeout {
			return r.pace.settle
		}
	} else if !r.pending {
		return 0
	} else if rest := r.pace.settle - now.Sub(r.last.at); rest > 0 {
		return rest
	}
	r.pending = false
	r.settle()
	return 0
}

// readNow takes the files as they are, without a look at whether they changed and
// whether somebody is still writing them.
func (r *reloader) readNow() {
	r.last = r.readAll()
	r.follow()
	r.pending = false
	if r.doubtful.IsZero() {
		r.doubtful = time.Now()
	}
	r.settle()
}

// settle takes the last reading for what it is.
func (r *reloader) settle() {
	switch {
	case r.last.err != nil:
		r.fail()
	case r.last.view.same(r.force):
		r.unchanged()
	default:
		r.enforce()
	}
	r.doubtful = time.Time{}
}

func (r *reloader) readAll() reading {
	v := newView(r.name, r.open)
	enforce, err := r.load(v)
	v.end()
	return reading{view: v, enforce: enforce, err: err, at: time.Now()}
}

// follow has the kernel report from wherever the last reading has been.
func (r *reloader) follow() {
	var dirs []string
	for _, th := range r.last.view.order {
		dirs = append(dirs, th.folders()...)
	}
	slices.Sort(dirs)
	r.notifier.watch(slices.Compact(dirs))
}

func (r *reloader) enforce() {
	first := r.force == nil
	r.force = r.last.view
	r.last.enforce()
	r.mu.Lock()
	s := &r.status
	s.LoadedAt, s.Files, s.Hash = time.Now(), r.force.fileNames(), r.force.hash(r.secret)
	s.Since, r.err = time.Time{}, nil
	if !first {
		s.Reloads++
	}
	r.mu.Unlock()
	if !first {
		r.onReload()
	}
}

func (r *reloader) fail() {
	r.mu.Lock()
	r.status.Failed++
	if r.err == nil {
		r.status.Since = r.doubtful
	}
	r.err = r.last.err
	r.mu.Unlock()
	r.log.Error(r.what+" not reloaded: those loaded before stay in force", "name", r.name, "err", r.last.err)
	r.onError(r.last.err)
}

// unchanged: what is in force is what is in the files, perhaps again.
func (r *reloader) unchanged() {
	r.mu.Lock()
	failed := r.err != nil
	r.status.Since, r.err = time.Time{}, nil
	r.mu.Unlock()
	if failed {
		r.log.Info(r.what+" are again as those in force", "name", r.name)
	}
}

// now is the status, and why what is in the files is not in force.
func (r *reloader) now() (Status, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status, r.err
}
