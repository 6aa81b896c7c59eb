package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tidegate.dev/tidegate/internal/lang/rulefile"
	"tidegate.dev/tidegate/rules"
)

// Layer is one of the places that rules come from. Those of several are joined: a later one
// replaces what an earlier one has by the same name, where it says so.
type Layer struct {
	// Name is a file or folder on disk; with an Origin it is not needed.
	Name string
	// Origin is where the layer comes from if it is not on disk. It is closed by who follows it.
	Origin Origin
}

// name is what people call l.
func (l *Layer) name() string {
	if l.Origin != nil {
		return l.Origin.Name()
	}
	return l.Name
}

func layerNames(layers []Layer) string {
	var names []string
	for i := range layers {
		names = append(names, layers[i].name())
	}
	return strings.Join(names, ", ")
}

// part is what is in force of a layer.
type part struct {
	Edition
	since   time.Time
	copied  bool // it comes from a copy
	bundle  *Bundle
	disk    diskPart
	refused *Refusal // what is newer; nil means nothing
}

// diskPart are the files of a layer on disk.
type diskPart struct {
	root   string
	folder bool
	files  map[string][]byte
}

// startPollers begins to ask the origins, and returns when each has answered, or there is a copy
// to begin with, or it takes too long.
func (r *reloader) startPollers(ctx context.Context) {
	for _, p := range r.pollers {
		if p != nil {
			p.kept = r.copies.load(p.name, r.log)
			go p.run(ctx)
		}
	}
	limit := time.NewTimer(r.copies.startTimeout)
	defer limit.Stop()
	for _, p := range r.pollers {
		if p == nil {
			continue
		}
		select {
		case <-p.tried:
		case <-limit.C:
			limit.Reset(0) // for the others
		case <-ctx.Done():
		}
		for b, _ := p.now(); b == nil && p.kept == nil && ctx.Err() == nil; b, _ = p.now() {
			// There is nothing else to begin with, so that a source that starts along with
			// this process is waited for.
			select {
			case <-r.arrived:
				continue
			case <-limit.C:
				limit.Reset(0)
			case <-ctx.Done():
			}
			break
		}
		p.useCopy()
		if _, copied := p.now(); copied {
			r.log.Warn("a source of rules did not answer: its last good copy is used until it does", "source", p.name, "revision", p.kept.Revision, "err", p.missing())
		}
	}
}

// stopPollers returns when no origin is asked any more.
func (r *reloader) stopPollers() {
	for _, p := range r.pollers {
		if p == nil {
			continue
		}
		<-p.done
		if err := p.origin.Close(); err != nil {
			r.log.Warn("a source of rules was not closed as it should be", "source", p.name, "err", err)
		}
	}
}

// begin puts the first rules into force: the newest, or the last good copies if these are bad.
func (r *reloader) begin() error {
	newest := r.readAll()
	r.last = newest
	if newest.err == nil {
		r.enforce()
		return nil
	}
	if slices.ContainsFunc(r.pollers, func(p *poller) bool { return p != nil && p.kept != nil }) {
		if r.last = r.readLayers((*poller).copyOrNow); r.last.err == nil {
			r.enforce()
			r.last, r.doubtful = newest, time.Now()
			r.fail()
			return nil
		}
	}
	r.last = newest
	if !r.copies.openStart || !slices.ContainsFunc(r.pollers, func(p *poller) bool { return p != nil }) {
		return newest.err
	}
	if err := r.copies.none(); err != nil {
		return err
	}
	r.mu.Lock()
	s := &r.status
	s.None, s.LoadedAt, s.Since, s.Failed, r.err = true, time.Now(), time.Now(), 1, newest.err
	r.refuseParts()
	r.mu.Unlock()
	r.log.Error("there are no rules yet: nothing is limited until there are", "name", r.name, "err", newest.err)
	r.onError(newest.err)
	return nil
}

// missingError is why there is no bundle of a source.
type missingError struct {
	name string
	err  error
}

func (e *missingError) Error() string {
	return fmt.Sprintf("there are no rules of %s, and no copy of them: %v", e.name, e.err)
}

func (e *missingError) Unwrap() error { return e.err }

// readLayers reads all layers, those that are not on disk from the bundle that which gives.
func (r *reloader) readLayers(which func(*poller) (b *Bundle, copied bool)) reading {
	roots, bundles, copied := make([]string, len(r.layers)), make([]*Bundle, len(r.layers)), make([]bool, len(r.layers))
	var missing error
	for i := range r.layers {
		p := r.pollers[i]
		if p == nil {
			roots[i] = r.layers[i].Name
		} else if bundles[i], copied[i] = which(p); bundles[i] == nil && missing == nil {
			missing = &missingError{p.name, p.missing()}
		}
	}
	v := newView(roots, bundles, r.open)
	v.copied = copied
	read := reading{view: v, err: missing, at: time.Now()}
	if missing == nil {
		read.enforce, read.err = r.load(v)
	}
	if read.err == nil {
		read.texts = v.texts()
	}
	v.end()
	read.at = time.Now()
	return read
}

// layersOf are the layers of a reading, for package rules.
func (r *reloader) layersOf(v *view) []rulefile.Layer {
	var all []rulefile.Layer
	for i, l := range r.layers {
		if b := v.bundles[i]; b != nil {
			all = append(all, b.Layers(l.name())...)
		} else {
			all = append(all, rulefile.Layer{Name: l.Name})
		}
	}
	return all
}

// setParts notes what is in force, while mu is held.
func (r *reloader) setParts(sums []string, now time.Time) {
	parts := make([]part, len(r.layers))
	for i := range r.layers {
		p := &parts[i]
		p.since, p.copied, p.bundle = now, r.force.copied[i], r.force.bundles[i]
		if p.bundle != nil {
			p.Edition = p.bundle.Edition
		} else {
			root := r.force.roots[i]
			p.disk = diskPart{root, r.force.base(i) == root, r.last.texts[i]}
		}
		p.Hash = sums[i]
		if i < len(r.parts) && r.parts[i].Hash == p.Hash && r.parts[i].Revision == p.Revision {
			p.since = r.parts[i].since
		}
	}
	r.parts = parts
}

// renameParts notes that what is in force is the newest, perhaps under other names, while mu is
// held.
func (r *reloader) renameParts() {
	for i := range r.parts {
		p, b := &r.parts[i], r.last.view.bundles[i]
		p.refused = nil
		if b == nil {
			continue
		}
		hash := p.Hash
		if p.Revision != b.Revision {
			p.since = time.Now()
		}
		p.bundle, p.copied, p.Edition = b, r.last.view.copied[i], b.Edition
		p.Hash = hash
		r.force.bundles[i] = b
	}
}

// refuseParts notes which layers have something newer that is not in force, while mu is held.
func (r *reloader) refuseParts() {
	if r.layers == nil || errors.As(r.last.err, new(*missingError)) {
		return
	}
	if r.parts == nil {
		r.parts = make([]part, len(r.layers))
	}
	onDisk := r.force == nil || !r.last.view.sameOnDisk(r.force)
	for i := range r.parts {
		p, b := &r.parts[i], r.last.view.bundles[i]
		if newer := b != nil && (r.force == nil || !b.sameFiles(r.force.bundles[i])); !newer && (b != nil || !onDisk) {
			p.refused = nil
			continue
		}
		refused := &Refusal{Since: time.Now(), Message: r.last.err.Error()}
		if b != nil {
			refused.Edition = b.Edition
		}
		var bad *rules.LoadError
		if errors.As(r.last.err, &bad) {
			refused.Problems = slices.Clone(bad.Problems)
		}
		if was := p.refused; was != nil && was.Edition == refused.Edition && was.Message == refused.Message {
			refused.Since = was.Since
		}
		p.refused = refused
	}
}

// layerStatus is what there is to know of each layer.
func (r *reloader) layerStatus() []LayerStatus {
	all := make([]LayerStatus, len(r.layers))
	r.mu.Lock()
	for i := range r.parts {
		p := &r.parts[i]
		all[i] = LayerStatus{Edition: p.Edition, Since: p.since, FromCopy: p.copied, Refused: p.refused}
	}
	r.mu.Unlock()
	for i := range all {
		all[i].Name = r.layers[i].name()
		if r.pollers[i] != nil {
			r.pollers[i].show(&all[i])
		}
	}
	return all
}
