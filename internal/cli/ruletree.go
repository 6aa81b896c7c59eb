package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tidegate.dev/tidegate/internal/front/admin"
	"tidegate.dev/tidegate/internal/lang/bounded"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
	"tidegate.dev/tidegate/rules"
)

// ruleTree is a rule file or a folder of them with all that it names, wherever it was read
// from.
type ruleTree struct {
	name string // as an operator calls it
	file *rulefile.File
	set  *rules.Set
	read map[string][]byte // all files, by the names they were read by
	main string            // the rule file to begin with; "" means that it is a folder
	root string            // the folder that names are relative to
}

// treeReader is where the files of a ruleTree are.
type treeReader interface {
	// list returns the files of a folder by their whole names, or false if it is not one.
	list(name string) ([]string, bool, error)
	readFile(name string) ([]byte, error)
	glob(pattern string) ([]string, error)
}

// readTree reads the rules of that name. The error has everything that is wrong.
func readTree(name string, from treeReader) (*ruleTree, error) {
	files, isFolder, err := from.list(name)
	if err != nil {
		return nil, err
	}
	t := &ruleTree{name: name, read: make(map[string][]byte), root: filepath.Dir(name)}
	read := func(name string) ([]byte, error) {
		text, err := from.readFile(name)
		if err == nil {
			t.read[filepath.Clean(name)] = text
		}
		return text, err
	}
	o := rulefile.Options{ReadFile: read, Glob: from.glob}
	main, src := filepath.Clean(name), []byte(nil)
	if isFolder {
		t.root = filepath.Clean(name)
		main, src = joinFolder(t.root, files)
		if src == nil {
			return nil, fmt.Errorf("%s has no *.yaml file with rules", name)
		}
	} else {
		t.main = main
		if src, err = read(name); err != nil {
			return nil, diag.List{{Pos: diag.Pos{File: name}, Message: "cannot read it: " + diag.Reason(err)}}
		}
	}
	var problems diag.List
	if t.file, problems = rulefile.Parse(main, src, o); problems.HasErrors() {
		return nil, problems
	}
	t.set, err = rules.Parse(main, src, rules.Config{ReadFile: read, Glob: from.glob, MergeDomains: true})
	if err != nil {
		return nil, problemsOf(err)
	}
	return t, nil
}

// joinFolder returns a rule file that includes the files of a folder; no src if it has none.
func joinFolder(folder string, files []string) (name string, src []byte) {
	var all strings.Builder
	for _, f := range files {
		if rulefile.InFolder(filepath.Base(f)) {
			all.WriteString("  - " + strconv.Quote(filepath.Base(f)) + "\n")
		}
	}
	if all.Len() == 0 {
		return "", nil
	}
	return filepath.Join(folder, "(all files)"), []byte("version: 1\ninclude:\n" + all.String())
}

// proposal returns the tree as the admin listener takes it.
func (t *ruleTree) proposal() admin.Proposal {
	root := t.root
	for name := range t.read { // a list may be beside the folder
		for rel, err := filepath.Rel(root, name); err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)); rel, err = filepath.Rel(root, name) {
			up := filepath.Dir(root)
			if up == root {
				break
			}
			root = up
		}
	}
	relative := func(name string) string {
		if rel, err := filepath.Rel(root, name); err == nil {
			name = rel
		}
		return filepath.ToSlash(name)
	}
	p := admin.Proposal{Files: make(map[string]string, len(t.read))}
	for name, text := range t.read {
		p.Files[relative(name)] = string(text)
	}
	switch {
	case t.main != "":
		p.Main = relative(t.main)
	case root != t.root:
		name, src := joinFolder(t.root, slices.Collect(func(yield func(string) bool) {
			for name := range t.read {
				if filepath.Dir(name) == t.root && !yield(name) {
					return
				}
			}
		}))
		p.Main = relative(name)
		p.Files[p.Main] = string(src)
	}
	return p
}

// disk reads files of this machine; "-" is standard input.
type disk struct{ stdin io.Reader }

func (d disk) list(name string) ([]string, bool, error) {
	info, err := os.Stat(name)
	if name == "-" || err != nil || !info.IsDir() {
		return nil, false, nil // reading it tells what is wrong
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, true, fmt.Errorf("%s: cannot list the folder: %s", name, diag.Reason(err))
	}
	var all []string
	for _, e := range entries {
		if !e.IsDir() {
			all = append(all, filepath.Join(name, e.Name()))
		}
	}
	return all, true, nil
}

func (d disk) readFile(name string) ([]byte, error) {
	if name == "-" {
		if d.stdin == nil {
			return nil, errors.New("there is no standard input")
		}
		return bounded.All(d.stdin, rulefile.MaxBytes)
	}
	return bounded.ReadFile(name, rulefile.MaxBytes)
}

func (d disk) glob(pattern string) ([]string, error) { return filepath.Glob(pattern) }
