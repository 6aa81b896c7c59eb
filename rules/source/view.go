package source

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
)

// view is what one reading of the rules saw: every file that was asked for, with
// the hash of its content or why there is none, and which files there were where
// a pattern or a folder was asked for. It can tell whether all of that is still so.
type view struct {
	roots   []string  // the rule files or folders of layers; "" for one that is not on disk
	bundles []*Bundle // of layers that are not on disk; nil for others
	copied  []bool    // which of them are copies
	open    func(name string) ([]byte, error)
	order   []thing
	seen    map[thing]*item
	over    atomic.Bool // the reading is
	rules   [][]string  // the files that the rules were read from, by layer; nil if they were not
	parts   [][]string  // the same, where a bundle has several layers by each of these
}

// newView begins a reading of the rules in roots and bundles. It looks at the roots themselves,
// so that a rule file that is not there is missed too.
func newView(roots []string, bundles []*Bundle, open func(string) ([]byte, error)) *view {
	v := &view{bundles: bundles, open: open, seen: map[thing]*item{}}
	for _, name := range roots {
		if name != "" {
			name = filepath.Clean(name)
			v.look(thing{name: name})
		}
		v.roots = append(v.roots, name)
	}
	return v
}

// readFile is what the reading reads files with. Whoever keeps it longer than
// that reads past the view.
func (v *view) readFile(name string) ([]byte, error) {
	if v.over.Load() {
		return v.open(name)
	}
	it := v.look(thing{name: filepath.Clean(name)})
	switch {
	case it.err != nil:
		return nil, it.err
	case it.mark.isDir():
		return nil, fmt.Errorf("%s is a folder, and a file is wanted here", name)
	}
	return it.data, nil
}

// glob is what the reading finds files with.
func (v *view) glob(pattern string) ([]string, error) {
	it := v.look(thing{name: pattern, pattern: true})
	return it.names, it.err
}

func (v *view) look(th thing) *item {
	it := v.seen[th]
	if it == nil {
		it = th.look(v.open)
		v.seen[th] = it
		v.order = append(v.order, th)
	}
	return it
}

// end ends the reading and lets go of what was read.
func (v *view) end() {
	v.over.Store(true)
	for _, it := range v.seen {
		it.data = nil
	}
}

// texts are the files on disk that the rules were read from, by layer. It is asked before the
// reading ends.
func (v *view) texts() []map[string][]byte {
	all := make([]map[string][]byte, len(v.rules))
	for i, names := range v.rules {
		if v.bundles[i] != nil {
			continue
		}
		all[i] = make(map[string][]byte)
		for _, name := range names {
			if it := v.seen[thing{name: name}]; it != nil && it.err == nil {
				all[i][name] = it.data
			}
		}
	}
	return all
}

// changed reports whether another reading would see something else. moved: links
// may lead elsewhere now, even if the content is the same.
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

// lacks reports whether a file that other had is empty here, or was not asked
// for. It may be on its way back: editors empty a file, or take it away, before
// they write it.
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

// files are those that were asked for, in order.
func (v *view) files() []thing {
	var all []thing
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

// sameOnDisk is same without the layers that are not on disk.
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

// base is the folder that the files of a layer on disk are named from.
func (v *view) base(layer int) string {
	root := v.roots[layer]
	if v.seen[thing{name: root}].mark.isDir() {
		return root
	}
	return filepath.Dir(root)
}

// setRules notes the files that the rules were read from, by layer and by the layers of bundles.
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

// hashes stand for the content of the files of each layer, and of all together.
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

// sum stands for the content of files on disk.
func (v *view) sum(layer int, names []string) string {
	var files []hashed
	for _, name := range names {
		if it := v.seen[thing{name: name}]; it != nil {
			files = append(files, hashed{from(v.base(layer), name), it.sum})
		}
	}
	return sum(files)
}
