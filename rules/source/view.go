package source

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
)

// view is what one reading of the rules saw: every file that was asked for, with
// the hash of its content or why there is none, and which files there were where
// a pattern or a folder was asked for. It can tell whether all of that is still so.
type view struct {
	root  string // the rule file or folder
	open  func(name string) ([]byte, error)
	order []thing
	seen  map[thing]*item
	over  atomic.Bool // the reading is
}

// newView begins a reading of the rules in name. It looks at name itself, so that
// a rule file that is not there is missed too.
func newView(name string, open func(string) ([]byte, error)) *view {
	v := &view{root: filepath.Clean(name), open: open, seen: map[thing]*item{}}
	v.look(thing{name: v.root})
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

// hash stands for the content of all files together but the secret one. Names
// count from the rule file or folder, so that machines which keep it elsewhere
// agree.
func (v *view) hash(secret string) string {
	root := v.root
	if !v.seen[thing{name: root}].mark.isDir() {
		root = filepath.Dir(root)
	}
	h := sha256.New()
	for _, th := range v.files() {
		if secret != "" && th.name == filepath.Clean(secret) {
			continue
		}
		name := th.name
		if rel, err := filepath.Rel(root, name); err == nil {
			name = filepath.ToSlash(rel)
		}
		fmt.Fprintf(h, "%q %x\n", name, v.seen[th].sum)
	}
	return hex.EncodeToString(h.Sum(nil))
}
