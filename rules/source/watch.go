// Package source keeps the rules in force the same as those in a file or folder.
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
// A single file mounted into a container (a subPath, a bind mount) never changes
// there, so changes cannot be followed. Mount its folder.
package source

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"tidegate.dev/tidegate/rules"
)

// Options of [Watch]. The zero value is fine.
type Options struct {
	// Config is what the rules are loaded with. Its ReadFile, if there is one, reads
	// files that exist on disk: that is where changes are looked for.
	Config rules.Config
	// Log is told of reloads, failures and warnings; nil means slog.Default.
	Log *slog.Logger
	// OnWarnings is told what is doubtful about rules that are about to be put into force,
	// the first ones included, also if that is nothing; nil logs it.
	OnWarnings func(rules.Problems)
	// OnReload is called after other rules were put into force.
	OnReload func(old, new *rules.Set)
	// OnError is called once for everything that could not be put into force, with
	// a *rules.LoadError. None of them may call Close.
	OnError func(error)
}

// Watcher keeps a [rules.Live] up to date, until Close or until its context ends.
type Watcher struct {
	live     *rules.Live
	reloader *reloader
	keys     *keyWatch  // of API keys; nil if there are none
	jwks     *jwksWatch // of the keys of a URL; nil if there are none
}

// Watch loads the rules in name, a file or a folder, and follows their changes.
// The error is that of [rules.Load]; nothing is running then.
func Watch(ctx context.Context, name string, o Options) (*Watcher, error) {
	return watch(ctx, name, o, usual)
}

func watch(ctx context.Context, name string, o Options, p pace) (*Watcher, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	w := &Watcher{}
	var old, set *rules.Set
	r := &reloader{name: name, what: "rules", open: o.Config.ReadFile, log: o.Log, pace: p}
	w.reloader = r
	r.load = func(v *view) (func(), error) {
		c := o.Config
		c.ReadFile, c.Glob = v.readFile, v.glob
		loaded, err := rules.Load(name, c)
		return func() { old, set = set, loaded; o.warn(loaded); w.enforce(loaded) }, err
	}
	r.onReload = func() {
		logReload(o.Log, name, old, set)
		if o.OnReload != nil {
			o.OnReload(old, set)
		}
	}
	r.onError = func(err error) {
		if o.OnError != nil {
			o.OnError(err)
		}
	}
	if o.Config.Trust.JWT != nil {
		r.secret = o.Config.Trust.JWT.Key
	}
	if err := loadKeys(o); err != nil {
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

// maxChanges is how many changes of counters a reload logs.
const maxChanges = 20

// logChanges logs what becomes of counters, the first of them each in a line.
func logChanges(log *slog.Logger, changes []rules.Change) {
	for _, c := range changes[:min(len(changes), maxChanges)] {
		log.Info("counters of a limit do not just go on", "change", c.String())
	}
	if more := len(changes) - maxChanges; more > 0 {
		log.Info("counters of more limits do not just go on", "limits", more)
	}
}

func logReload(log *slog.Logger, name string, old, set *rules.Set) {
	log.Info("rules reloaded", "name", name, "rules", len(set.Rules()))
	logChanges(log, rules.Compare(old, set))
}

// maxWarnings is how many warnings are logged for one version of the rules.
const maxWarnings = 20

// warn tells what is doubtful about set: above all, what a rule counts by and nobody is
// trusted to say.
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

func (w *Watcher) enforce(set *rules.Set) {
	if w.live == nil {
		w.live = rules.NewLive(set)
		return
	}
	w.live.Swap(set)
}

// Live is the rules in force: what a Gate asks.
func (w *Watcher) Live() *rules.Live { return w.live }

// Status says what is in force and how the last reload went.
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
	s.APIKeys, s.JWKS = w.keys.status(), w.jwks.status()
	return s
}

// Reload has the files read again soon, even if nothing tells that they changed. It does
// not wait for that; how it went is logged and shown by Status.
func (w *Watcher) Reload() {
	w.reloader.readSoon()
	if w.keys != nil {
		w.keys.reloader.readSoon()
	}
}

// Close stops following the files; the rules in force stay. It returns when
// nothing runs any more.
func (w *Watcher) Close() {
	w.reloader.close()
	w.keys.close()
	w.jwks.close()
}
