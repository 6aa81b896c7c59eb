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

// Layer is one of several places that rules come from. Layers are joined: a later one can replace
// what an earlier one has under the same name.
type Layer struct {
	// Name is a file or folder on disk; with an Origin it is not needed.
	Name string
	// Origin is where the layer comes from if it is not on disk. Whoever follows the layer closes
	// it.
	Origin Origin
}

// name returns the name of l for people.
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

// part is the part of the rules in force that comes from one layer.
type part struct {
	Edition
	since   time.Time
	copied  bool // it comes from a copy
	bundle  *Bundle
	disk    diskPart
	refused *Refusal // the newest revision, if it is not in force; nil means that it is
}

// diskPart has the files of a layer on disk.
type diskPart struct {
	root   string
	folder bool
	files  map[string][]byte
}

// startPollers starts the pollers. It returns when each has a bundle, or has failed and has a copy,
// or after the start timeout.
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
			// There is no alternative, so it waits for a source that may be starting at the same
			// time as this process.
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

// stopPollers stops the pollers and waits until they have ended.
func (r *reloader) stopPollers() {
	for _, p := range r.pollers {
		if p == nil {
			continue
		}
		<-p.done
		if err := p.origin.Close(); err != nil {
			r.log.Warn("a source of rules was not closed cleanly", "source", p.name, "err", err)
		}
	}
}

// begin puts the first rules in force: the newest or, if these are bad, the last good copies.
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

// missingError says why there is no bundle of a source.
type missingError struct {
	name string
	err  error
}

func (e *missingError) Error() string {
	return fmt.Sprintf("there are no rules of %s, and no copy of them: %v", e.name, e.err)
}

func (e *missingError) Unwrap() error { return e.err }

// readLayers reads all layers; which returns the bundles of those that are not on disk.
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

// layersOf returns the layers of a reading, for package rules.
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

// setParts records what is in force. The caller holds mu.
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

// renameParts records that what is in force is still the newest, perhaps under another revision.
// The caller holds mu.
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

// refuseParts records which layers have something newer that is not in force. The caller holds mu.
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

// layerStatus returns the status of each layer.
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
