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

// reloader follows the files below a name, or several layers, and puts into force what loads. It
// knows nothing of rules and keys: load reads them all through the view, and says how to
// put them into force, or why they are no good.
type reloader struct {
	name     string
	what     string        // "rules", for the log
	layers   []Layer       // nil means there is only name, on disk
	pollers  []*poller     // of layers that are not on disk; nil for others
	arrived  chan struct{} // one of them has another bundle
	load     func(*view) (enforce func(), err error)
	open     func(string) ([]byte, error) // nil means from disk
	copies   copies                       // of what is in force and not on disk
	onReload func()                       // called when the status shows it, but not of the first load
	onError  func(error)
	log      *slog.Logger
	pace     pace
	notifier *notifier
	again    chan struct{} // somebody wants the files to be read now
	stop     context.CancelFunc
	done     chan struct{}

	// Of the goroutine.
	last     reading // the latest
	force    *view   // what is in force was read from; nil means nothing is
	started  bool
	pending  bool      // last is doubtful, and waits to be looked at again
	doubtful time.Time // since when there is no clear answer; zero means there is one

	mu     sync.Mutex
	status Status // under mu
	err    error  // under mu; why what is in the files is not in force
	parts  []part // under mu; of what is in force, by layer
}

// reading is the outcome of a load.
type reading struct {
	view    *view
	enforce func()
	texts   []map[string][]byte // of files on disk, by layer
	err     error
	at      time.Time
}

// start loads for the first time; if that fails, nothing is running.
func (r *reloader) start(ctx context.Context) error {
	if r.open == nil {
		r.open = bounded.Files(rulefile.MaxBytes)
	}
	ctx, r.stop = context.WithCancel(ctx)
	r.done, r.again = make(chan struct{}), make(chan struct{}, 1)
	r.startPollers(ctx)
	if err := r.begin(); err != nil {
		r.stop()
		r.stopPollers()
		return err
	}
	r.notifier = newNotifier(r.log, !r.pace.silent && r.onDisk())
	r.follow()
	r.started = true
	go r.run(ctx)
	return nil
}

// onDisk reports whether there is a layer that the kernel can tell about.
func (r *reloader) onDisk() bool {
	return len(r.layers) == 0 || slices.Contains(r.pollers, nil)
}

// signal is called by pollers.
func (r *reloader) signal() {
	select {
	case r.arrived <- struct{}{}:
	default: // it is about to be seen
	}
}

// readSoon has the files read even if nothing tells that they changed.
func (r *reloader) readSoon() {
	select {
	case r.again <- struct{}{}:
	default: // it is about to be done
	}
	for _, p := range r.pollers {
		if p != nil {
			p.askSoon()
		}
	}
}

// close stops the goroutines and waits until they have.
func (r *reloader) close() {
	r.stop()
	<-r.done
	r.stopPollers()
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
		case <-r.arrived:
			if first.IsZero() { // else it is read together with what is being written
				due.Reset(0)
			}
		case <-poll.C:
			if first.IsZero() && r.stirredOnDisk() {
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
func (r *reloader) stirred() bool { return r.hasArrived() || r.stirredOnDisk() }

// hasArrived reports whether there is a bundle that was not read.
func (r *reloader) hasArrived() bool {
	for i, p := range r.pollers {
		if p == nil {
			continue
		}
		if b, _ := p.now(); b != r.last.view.bundles[i] {
			return true
		}
	}
	return false
}

func (r *reloader) stirredOnDisk() bool {
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
		if r.pollers != nil { // a bundle is whole, and nobody is still writing it
			r.pending = r.pending && r.force != nil && !r.last.view.sameOnDisk(r.force)
		}
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
	case r.force != nil && r.last.view.same(r.force):
		r.unchanged()
	default:
		r.enforce()
	}
	r.doubtful = time.Time{}
}

func (r *reloader) readAll() reading {
	if r.layers == nil {
		v := newView([]string{r.name}, make([]*Bundle, 1), r.open)
		enforce, err := r.load(v)
		v.rules = [][]string{v.fileNames()}
		v.end()
		return reading{view: v, enforce: enforce, err: err, at: time.Now()}
	}
	return r.readLayers((*poller).now)
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
	r.force = r.last.view
	r.last.enforce()
	sums, all := r.force.hashes(r.layers)
	r.mu.Lock()
	s := &r.status
	s.LoadedAt, s.Files, s.Hash, s.None = time.Now(), r.fileNames(), all, false
	s.Since, r.err = time.Time{}, nil
	if r.started {
		s.Reloads++
	}
	r.setParts(sums, s.LoadedAt)
	r.mu.Unlock()
	r.last.texts = nil
	r.keepCopies()
	if r.started {
		r.onReload()
	}
}

// fileNames are those of what is in force.
func (r *reloader) fileNames() []string {
	names := r.force.fileNames()
	for i, b := range r.force.bundles {
		if b != nil {
			names = append(names, r.force.rules[i]...)
		}
	}
	return names
}

func (r *reloader) fail() {
	r.mu.Lock()
	r.status.Failed++
	if r.err == nil {
		r.status.Since = r.doubtful
	}
	r.err = r.last.err
	r.refuseParts()
	r.mu.Unlock()
	r.log.Error(r.what+" not reloaded: those loaded before stay in force", "name", r.name, "err", r.last.err)
	r.onError(r.last.err)
}

// unchanged: what is in force is what is in the files, perhaps again.
func (r *reloader) unchanged() {
	r.mu.Lock()
	failed := r.err != nil
	r.status.Since, r.err = time.Time{}, nil
	r.renameParts()
	r.mu.Unlock()
	r.keepCopies()
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
