package source

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// dependency is what rules were read from: a file, a folder, or the names that match a pattern.
type dependency struct {
	name    string
	pattern bool
}

// item is the state of a dependency when it was read.
type item struct {
	mark  mark // taken before the content was read: if it changes, the content is read again
	sum   [sha256.Size]byte
	size  int
	err   error
	data  []byte   // of a file; kept during the reading, so that it never sees two versions
	names []string // of a folder or a pattern
}

// look reads the current state of the dependency.
func (th dependency) look(open func(string) ([]byte, error)) *item {
	it := &item{}
	if th.pattern {
		it.names, it.err = filepath.Glob(th.name)
	} else if it.mark = markOf(th.name); it.mark.isDir() {
		it.names, it.err = ruleFiles(th.name)
	} else if info := it.mark.info; info != nil && !info.Mode().IsRegular() {
		it.err = fmt.Errorf("%s is not a regular file (%s) and cannot be watched: copy what it holds into a file", th.name, info.Mode())
	} else {
		it.data, it.err = open(th.name)
	}
	it.size = len(it.data)
	if it.names != nil {
		it.sum = sha256.Sum256([]byte(strings.Join(it.names, "\x00")))
	} else {
		it.sum = sha256.Sum256(it.data)
	}
	return it
}

// ruleFiles returns the names of the entries that belong to a rule folder.
func ruleFiles(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if rulefile.InFolder(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// holds reports whether th is certainly unchanged, without reading its content.
func (it *item) holds(th dependency) bool {
	return !th.pattern && it.err == nil && !it.mark.young && it.mark.same(markOf(th.name))
}

func (it *item) equal(other *item) bool {
	if it.err != nil || other.err != nil {
		return it.err != nil && other.err != nil && it.err.Error() == other.err.Error()
	}
	return it.sum == other.sum && it.mark.isDir() == other.mark.isDir()
}

// folders returns the folders in which a change can affect th.
func (th dependency) folders() []string {
	if !th.pattern {
		return folders(th.name)
	}
	dir := filepath.Dir(th.name)
	for strings.ContainsAny(dir, `*?[`) {
		dir = filepath.Dir(dir)
	}
	return folders(dir)
}
