package source

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// thing is what a reading of the rules asks for: a file, a folder, or the names
// that fit a pattern.
type thing struct {
	name    string
	pattern bool
}

// item is what a thing was when it was looked at.
type item struct {
	mark  mark // taken before the content was: if it is old, the content is looked at again
	sum   [sha256.Size]byte
	size  int
	err   error
	data  []byte   // of a file; kept while reading, so that nobody sees two versions of it
	names []string // of a folder or a pattern
}

// look reads what is there now.
func (th thing) look(open func(string) ([]byte, error)) *item {
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

// ruleFiles are the names of the entries that a rule folder is made of.
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

// holds reports whether th is sure to be as it was, by a look from outside.
func (it *item) holds(th thing) bool {
	return !th.pattern && it.err == nil && !it.mark.young && it.mark.same(markOf(th.name))
}

func (it *item) equal(other *item) bool {
	if it.err != nil || other.err != nil {
		return it.err != nil && other.err != nil && it.err.Error() == other.err.Error()
	}
	return it.sum == other.sum && it.mark.isDir() == other.mark.isDir()
}

// folders are those in which a change can make th something else.
func (th thing) folders() []string {
	if !th.pattern {
		return folders(th.name)
	}
	dir := filepath.Dir(th.name)
	for strings.ContainsAny(dir, `*?[`) {
		dir = filepath.Dir(dir)
	}
	return folders(dir)
}
