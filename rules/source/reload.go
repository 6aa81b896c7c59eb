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

// pace is the timing of the reloader. A change takes effect within poll + quiet + settle and the
// time it takes to load, whether the kernel reports it or not.
type pace struct {
	poll       time.Duration // between two checks of the files
	quiet      time.Duration // without a further change, before a reload
	most       time.Duration // how long further changes can delay a reload
	settle     time.Duration // how long a doubtful state has to stay the same
	badTimeout time.Duration // how long a bad state that keeps changing is tolerated
	silent     bool          // kernel notifications are off
}

var usual = pace{
	poll:       400 * time.Millisecond,
	quiet:      75 * time.Millisecond,
	most:       500 * time.Millisecond,
	settle:     150 * time.Millisecond,
	badTimeout: 2 * time.Second,
}

// reloader follows a file or folder, or several layers, and puts in force what loads. It knows
// nothing about rules and keys: load reads them through the view, and returns a function that puts
// them in force, with the hash of the files, or an error.
type reloader struct {
	name     string
	what     string        // "rules", for the log
	layers   []Layer       // nil means just name, on disk
	pollers  []*poller     // by layer; nil for layers on disk
	arrived  chan struct{} // a poller has another bundle
	load     func(*view) (enforce func(hash string), err error)
	open     func(string) ([]byte, error) // nil reads from disk
	copies   copies                       // of bundles in force
	onReload func()                       // called when the status shows a reload, except the first load
	onError  func(error)
	log      *slog.Logger
	pace     pace
	notifier *notifier
	again    chan struct{} // the files have to be read now
	stop     context.CancelFunc
	done     chan struct{}

	// The following belong to the goroutine.
	last     reading // the latest reading
	force    *view   // what is in force was read from it; nil means that nothing is in force
	started  bool
	pending  bool      // last is doubtful, and will be checked again
	doubtful time.Time // since when the state is doubtful; zero means that it is not

	mu     sync.Mutex
	status Status // under mu
	err    error  // under mu; why the state of the files is not in force
	parts  []part // under mu; what is in force, by layer
}

// reading is the result of reading all files.
type reading struct {
	view    *view
	enforce func(hash string)
	texts   []map[string][]byte // of files on disk, by layer
	err     error
	at      time.Time
}

// start loads for the first time. If that fails, no goroutine is left running.
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

// onDisk reports whether there is a layer that the kernel can report about.
func (r *reloader) onDisk() bool {
	return len(r.layers) == 0 || slices.Contains(r.pollers, nil)
}

// signal wakes the reloader; pollers call it.
func (r *reloader) signal() {
	select {
	case r.arrived <- struct{}{}:
	default: // it is already signalled
	}
}

// readSoon makes the reloader read the files even without a change.
func (r *reloader) readSoon() {
	select {
	case r.again <- struct{}{}:
	default: // it is already requested
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
	var first time.Time // the first of the changes that are waited out
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
			if first.IsZero() { // otherwise it is read together with what is being written
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

// stirred reports whether the bundles or the files on disk differ from the last reading.
func (r *reloader) stirred() bool { return r.hasArrived() || r.stirredOnDisk() }

// hasArrived reports whether there is a bundle that was not read yet.
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

// step reads the files if they have changed, and accepts a reading that is not doubtful, or has
// been for long enough. again is after how long to call step again; 0 means that it need not be.
func (r *reloader) step(now time.Time) (again time.Duration) {
	if r.stirred() {
		r.last = r.readAll()
		r.follow()
		r.pending = r.last.err != nil || r.last.view.lacks(r.force)
		if r.pollers != nil { // a bundle is complete: no file is still being written
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

// readNow reads the files as they are, without checking whether they have changed or are still
// being written.
func (r *reloader) readNow() {
	r.last = r.readAll()
	r.follow()
	r.pending = false
	if r.doubtful.IsZero() {
		r.doubtful = time.Now()
	}
	r.settle()
}

// settle accepts the last reading, good or bad.
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

// follow sets the folders to watch, from all that the last reading has seen.
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
	sums, all := r.force.hashes(r.layers)
	r.last.enforce(all)
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

// fileNames returns the names of the files in force.
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

// unchanged records that the state of the files is what is in force, perhaps again.
func (r *reloader) unchanged() {
	r.mu.Lock()
	failed := r.err != nil
	r.status.Since, r.err = time.Time{}, nil
	r.renameParts()
	r.mu.Unlock()
	r.keepCopies()
	if failed {
		r.log.Info(r.what+" are the same again as those in force", "name", r.name)
	}
}

// now returns the status, and why the state of the files is not in force.
func (r *reloader) now() (Status, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status, r.err
}
