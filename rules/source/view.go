package source

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
)

// view is what one reading of the rules has seen: every file that was asked for, with the hash of
// its content or the error, and which files there were for a pattern or in a folder. It can tell
// whether all of that is still the same.
type view struct {
	roots   []string  // the rule files or folders of layers; "" for one that is not on disk
	bundles []*Bundle // of layers that are not on disk; nil for others
	copied  []bool    // which of them are copies
	open    func(name string) ([]byte, error)
	order   []dependency
	seen    map[dependency]*item
	over    atomic.Bool // set when the reading has ended
	rules   [][]string  // the files that the rules were read from, by layer; nil if they were not
	parts   [][]string  // the same, split by the layers within bundles
}

// newView begins a reading of the rules in roots and bundles. It looks at the roots themselves, so
// that a missing rule file is noticed, too.
func newView(roots []string, bundles []*Bundle, open func(string) ([]byte, error)) *view {
	v := &view{bundles: bundles, open: open, seen: map[dependency]*item{}}
	for _, name := range roots {
		if name != "" {
			name = filepath.Clean(name)
			v.look(dependency{name: name})
		}
		v.roots = append(v.roots, name)
	}
	return v
}

// readFile reads a file for the reading. After the reading has ended, it reads from disk without
// recording.
func (v *view) readFile(name string) ([]byte, error) {
	if v.over.Load() {
		return v.open(name)
	}
	it := v.look(dependency{name: filepath.Clean(name)})
	switch {
	case it.err != nil:
		return nil, it.err
	case it.mark.isDir():
		return nil, fmt.Errorf("%s is a folder, and a file is expected here", name)
	}
	return it.data, nil
}

// glob finds files for the reading.
func (v *view) glob(pattern string) ([]string, error) {
	it := v.look(dependency{name: pattern, pattern: true})
	return it.names, it.err
}

func (v *view) look(th dependency) *item {
	it := v.seen[th]
	if it == nil {
		it = th.look(v.open)
		v.seen[th] = it
		v.order = append(v.order, th)
	}
	return it
}

// end ends the reading and releases the content.
func (v *view) end() {
	v.over.Store(true)
	for _, it := range v.seen {
		it.data = nil
	}
}

// texts returns the files on disk that the rules were read from, by layer. It has to be called
// before end.
func (v *view) texts() []map[string][]byte {
	all := make([]map[string][]byte, len(v.rules))
	for i, names := range v.rules {
		if v.bundles[i] != nil {
			continue
		}
		all[i] = make(map[string][]byte)
		for _, name := range names {
			if it := v.seen[dependency{name: name}]; it != nil && it.err == nil {
				all[i][name] = it.data
			}
		}
	}
	return all
}

// changed reports whether another reading would see something else. moved: links may lead elsewhere
// now, even if the content is the same.
func (v *view) changed() (changed, moved bool) {
	for _, th := range v.order {
		was := v.seen[th]
		if was.holds(th) {
			continue
		}
		is := th.look(v.open)
		if !is.equal(was) {
			return true, true
		}
		moved = moved || !is.mark.same(was.mark)
		is.data = nil
		v.seen[th] = is
	}
	return false, moved
}

// lacks reports whether a file that other had is empty here, or was not asked for. It may only be
// about to be written: editors truncate or remove a file first.
func (v *view) lacks(other *view) bool {
	if other == nil {
		return false
	}
	for _, th := range other.files() {
		if it := v.seen[th]; other.seen[th].size > 0 && (it == nil || it.size == 0) {
			return true
		}
	}
	return false
}

// files returns the files that were asked for, in order.
func (v *view) files() []dependency {
	var all []dependency
	for _, th := range v.order {
		if !th.pattern && !v.seen[th].mark.isDir() {
			all = append(all, th)
		}
	}
	return all
}

func (v *view) fileNames() []string {
	var all []string
	for _, th := range v.files() {
		all = append(all, th.name)
	}
	return all
}

// same reports whether both readings saw the same files with the same content.
func (v *view) same(other *view) bool {
	if !v.sameOnDisk(other) {
		return false
	}
	for i, b := range v.bundles {
		if b != other.bundles[i] && !b.sameFiles(other.bundles[i]) {
			return false
		}
	}
	return true
}

// sameOnDisk is same for the layers on disk alone.
func (v *view) sameOnDisk(other *view) bool {
	files := v.files()
	if !slices.Equal(files, other.files()) {
		return false
	}
	for _, th := range files {
		if !v.seen[th].equal(other.seen[th]) {
			return false
		}
	}
	return true
}

// base returns the folder that file names of a layer on disk are relative to.
func (v *view) base(layer int) string {
	root := v.roots[layer]
	if v.seen[dependency{name: root}].mark.isDir() {
		return root
	}
	return filepath.Dir(root)
}

// setRules records the files that the rules were read from, by layer and by the layers within
// bundles.
func (v *view) setRules(parts [][]string) {
	v.rules, v.parts = make([][]string, len(v.bundles)), parts
	for i, b := range v.bundles {
		n := 1
		if b != nil {
			n += len(b.Over)
		}
		v.rules[i] = slices.Concat(parts[:n]...)
		parts = parts[n:]
	}
}

// hashes returns a hash for the files of each layer, and one for all together.
func (v *view) hashes(layers []Layer) (sums []string, all string) {
	sums = make([]string, len(v.rules))
	var each []string
	parts := v.parts
	for i, names := range v.rules {
		b := v.bundles[i]
		if b == nil {
			sums[i] = v.sum(i, names)
			each = append(each, sums[i])
			parts = parts[min(1, len(parts)):]
			continue
		}
		is := b.Layers(layers[i].name())
		own := b.sums(is, parts)
		parts = parts[len(is):]
		sums[i], each = joined(own), append(each, own...)
	}
	return sums, joined(each)
}

// sum returns a hash of files on disk.
func (v *view) sum(layer int, names []string) string {
	var files []hashed
	for _, name := range names {
		if it := v.seen[dependency{name: name}]; it != nil {
			files = append(files, hashed{from(v.base(layer), name), it.sum})
		}
	}
	return sum(files)
}
