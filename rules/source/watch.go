// Package source keeps the rules in force the same as those in a file or folder, on a config
// server, or in several of these.
//
// Start with [Watch]:
//
//	w, err := source.Watch(ctx, "rules.yaml", source.Options{})
//	if err != nil {
//		return err // every mistake of the file, with its line
//	}
//	defer w.Close()
//	gate := tidegate.NewGate(w.Live(), memory.New())
//
// A change of the rule file, of its includes, of its lists or of the API keys takes effect
// within a second, whether the file is written in place, replaced, or reached through
// links, as Kubernetes mounts a ConfigMap. The kernel's notifications make that
// fast, and polling makes it reliable: network mounts report nothing.
//
// Rules load whole or not at all. If they do not load, or the file is gone, the
// previous ones stay in force; that is logged, counted, and shown by
// [Watcher.Status]. A file that is invalid only while an editor writes it is not
// reported. The file of API keys is followed by itself: neither a broken rule file nor
// a long one delays the revocation of a key, and broken keys do not hold up rules.
//
// [Follow] is Watch for rules that come from elsewhere, and for several layers of them. An
// [Origin] is such a place; packages below this one have them for HTTP, Redis, etcd and Central
// Dogma. Whatever becomes of an origin, the rules in force stay. Its last good files can be kept
// on disk, for a start without it.
//
// A single file mounted into a container (a subPath, a bind mount) never changes
// there, so changes cannot be followed. Mount its folder.
package source

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate/rules"
)

// Options of [Watch] and [Follow]. The zero value is fine.
type Options struct {
	// Config is what the rules are loaded with. If it has a ReadFile, that must read files that
	// exist on disk: changes are looked for there.
	Config rules.Config
	// Log gets reloads, failures and warnings; nil means slog.Default.
	Log *slog.Logger
	// OnWarnings is called with the warnings about rules before they come into force, the first
	// ones included, even if there are none; nil logs them.
	OnWarnings func(rules.Problems)
	// OnReload is called after other rules came into force.
	OnReload func(old, new *rules.Set)
	// OnError is called once for everything that could not be put in force, with a
	// *rules.LoadError or, while Open lets an origin have no rules yet, with the reason why it has
	// none. None of these functions may call Close.
	OnError func(error)

	// Copy is a folder for the last good files of each origin: the next process begins with them if
	// the origin does not answer, or has bad rules. "" keeps none.
	Copy string
	// Handed is a folder with such files from the process that this one takes over from, written by
	// [Watcher.KeepCopies]. It takes precedence over Copy.
	Handed string
	// Open: if an origin does not answer at the start, or has bad rules, and there is no copy,
	// begin without rules, so that nothing is limited until there are some. Otherwise Follow
	// returns an error.
	Open bool
	// StartTimeout is how long Follow waits for origins that have no copy; 0 means 10 seconds.
	StartTimeout time.Duration
	// Wait is how long origins wait for changes before they answer that there are none; 0 means a
	// minute. An origin that is silent for half a minute longer is shown as failing.
	Wait time.Duration
}

// Watcher keeps a [rules.Live] up to date, until Close or until its context ends.
type Watcher struct {
	live     *rules.Live
	force    atomic.Pointer[hashedSet] // what live has
	next     atomic.Pointer[hashedSet] // the same, or what live is about to have, or has since just now
	reloader *reloader
	keys     *keyWatch  // nil if there are none
	jwks     *jwksWatch // of the keys of a URL; nil if there are none
}

// Watch loads the rules in name, a file or a folder, and follows their changes.
// The error is that of [rules.Load]; nothing is running then.
func Watch(ctx context.Context, name string, o Options) (*Watcher, error) {
	return watch(ctx, name, o, usual)
}

func watch(ctx context.Context, name string, o Options, p pace) (*Watcher, error) {
	return follow(ctx, []Layer{{Name: name}}, o, p)
}

// Follow loads the rules of all layers, joined, and follows their changes. On an error nothing
// is running, and the origins are closed.
func Follow(ctx context.Context, layers []Layer, o Options) (*Watcher, error) {
	return follow(ctx, layers, o, usual)
}

func follow(ctx context.Context, layers []Layer, o Options, p pace) (*Watcher, error) {
	o.fill()
	w := &Watcher{}
	var old, set *rules.Set
	r := &reloader{
		name: layerNames(layers), what: "rules", layers: layers, pollers: make([]*poller, len(layers)), arrived: make(chan struct{}, 1),
		open: o.Config.ReadFile, log: o.Log, pace: p,
		copies: copies{folder: o.Copy, handed: o.Handed, startTimeout: o.StartTimeout, openStart: o.Open, saved: make(map[string]*Bundle)},
	}
	w.reloader = r
	put := func(loaded *rules.Set, hash string) { old, set = set, loaded; o.warn(loaded); w.enforce(loaded, hash) }
	r.load = func(v *view) (func(string), error) {
		c := o.Config
		c.ReadFile, c.Glob = v.readFile, v.glob
		loaded, err := rules.LoadLayers(r.layersOf(v), c)
		if err == nil {
			v.setRules(loaded.LayerFiles())
		}
		return func(hash string) { put(loaded, hash) }, err
	}
	r.copies.none = func() error {
		empty, err := rules.Parse("(no rules yet)", []byte("version: 1\nrules: []\n"), o.Config)
		if err == nil {
			put(empty, "")
		}
		return err
	}
	r.onReload = func() {
		logReload(o.Log, r.name, old, set)
		if o.OnReload != nil {
			o.OnReload(old, set)
		}
	}
	r.onError = func(err error) {
		if o.OnError != nil {
			o.OnError(err)
		}
	}
	for i, l := range layers {
		if l.Origin != nil {
			r.pollers[i] = newPoller(l, &o, r.signal)
		}
	}
	if err := loadKeys(o); err != nil {
		closeAll(layers)
		return nil, err
	}
	if err := r.start(ctx); err != nil {
		return nil, err
	}
	if err := w.watchKeys(ctx, o, p); err != nil {
		r.close()
		return nil, err
	}
	w.jwks = watchJWKS(ctx, o.Config.Trust.JWT, o.Log)
	return w, nil
}

// fill sets defaults.
func (o *Options) fill() {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = 10 * time.Second
	}
	if o.Wait == 0 {
		o.Wait = time.Minute
	}
}

func closeAll(layers []Layer) {
	for _, l := range layers {
		if l.Origin != nil {
			_ = l.Origin.Close() // nothing was asked of it yet
		}
	}
}

// maxChanges is how many changes of counters a reload logs.
const maxChanges = 20

// logChanges logs what happens to counters: the first changes, one per line.
func logChanges(log *slog.Logger, changes []rules.Change) {
	for _, c := range changes[:min(len(changes), maxChanges)] {
		log.Info("counters of a limit do not simply continue", "change", c.String())
	}
	if more := len(changes) - maxChanges; more > 0 {
		log.Info("counters of more limits do not simply continue", "limits", more)
	}
}

func logReload(log *slog.Logger, name string, old, set *rules.Set) {
	log.Info("rules reloaded", "name", name, "rules", len(set.Rules()))
	logChanges(log, rules.Compare(old, set))
}

// maxWarnings is how many warnings are logged for one version of the rules.
const maxWarnings = 20

// warn reports the warnings of set: most important, what a rule counts by although nothing verifies
// it.
func (o *Options) warn(set *rules.Set) {
	all := set.Warnings()
	if o.OnWarnings != nil {
		o.OnWarnings(all)
		return
	}
	for _, p := range all[:min(len(all), maxWarnings)] {
		o.Log.Warn(p.Message, "at", fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col), "hint", p.Hint)
	}
	if more := len(all) - maxWarnings; more > 0 {
		o.Log.Warn("the rules have more warnings: tidegate lint shows them all", "warnings", more)
	}
}

func (w *Watcher) enforce(set *rules.Set, hash string) {
	is := &hashedSet{set, hash}
	w.next.Store(is)
	if w.live == nil {
		w.live = rules.NewLive(set)
	} else {
		w.live.Swap(set)
	}
	w.force.Store(is)
}

// hashedSet is a Set with the hash of its files.
type hashedSet struct {
	set  *rules.Set
	hash string
}

// Hash returns the hash of the rules in force, as Status does. Unlike that of Status, which is set a
// little later, it changes at the same moment as the Set of Live; and it costs next to nothing.
func (w *Watcher) Hash() string {
	if next := w.next.Load(); next.set == w.live.Set() {
		return next.hash
	}
	return w.force.Load().hash
}

// Live returns the rules in force, for a Gate.
func (w *Watcher) Live() *rules.Live { return w.live }

// Status returns the state of the rules in force and of the last reload.
func (w *Watcher) Status() Status {
	s, err := w.reloader.now()
	s.Files = slices.Clone(s.Files)
	if err != nil {
		s.LastError = err.Error()
		var bad *rules.LoadError
		if errors.As(err, &bad) {
			s.Problems = slices.Clone(bad.Problems)
		}
	}
	s.Layers = w.reloader.layerStatus()
	s.APIKeys, s.JWKS = w.keys.status(), w.jwks.status()
	return s
}

// Reload has all files read and all origins asked again soon, even without a change. It does not
// wait; the result is logged and shown by Status.
func (w *Watcher) Reload() {
	w.reloader.readSoon()
	if w.keys != nil {
		w.keys.reloader.readSoon()
	}
}

// Close stops following the files; the rules in force stay. It returns when all goroutines have
// ended.
func (w *Watcher) Close() {
	w.reloader.close()
	w.keys.close()
	w.jwks.close()
}
