package rulefile

import (
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// Bounds of what one file may include.
const (
	maxFiles = 1000
	maxDepth = 16
)

// tree is a parsed file that was not decoded yet.
type tree struct {
	file  string
	layer int
	root  *yamltree.Node
}

// readFile reads a file, unless its layer has it already. Problems with finding it are reported at
// from, which is where it is named. chain are the files that include each other down to that place.
func (d *decoder) readFile(name string, from diag.Pos, chain []string) {
	name = d.layer().clean(name)
	switch {
	case slices.Contains(chain, name):
		loop := append(slices.Clone(chain[slices.Index(chain, name):]), name)
		d.fail(from, "files include each other: "+strings.Join(loop, " → "), "take this one out of `include`")
		return
	case slices.Contains(d.file.Layers[d.at], name):
		return
	case len(chain) > maxDepth || len(d.file.Files) >= maxFiles:
		d.fail(from, "too many files include others", "include at most 1000 files, nested at most 16 deep")
		return
	}
	src, err := d.layer().read(name, d.o.ReadFile)
	if err != nil {
		d.noteFile(name) // it may appear later
		d.partial = true
		d.fail(from, "cannot read "+diag.Quote(name)+": "+diag.Reason(err), missingFile(chain))
		return
	}
	d.readText(name, src, chain)
}

// missingFile returns the hint for a file that cannot be read or a pattern that matches none.
func missingFile(chain []string) string {
	if len(chain) == 0 {
		return "name a rule file that exists and may be read"
	}
	return "names are relative to the folder of " + diag.Quote(chain[len(chain)-1]) + "; for all files of a folder write `rules.d/*.yaml`"
}

// readText parses a file and continues with its includes.
func (d *decoder) readText(name string, src []byte, chain []string) {
	d.noteFile(name)
	d.file.lines[name] = diag.SplitLines(src)
	root, problems := yamltree.Parse(name, src)
	if isDomain(root, d.file.lines[name]) {
		d.file.Domains = append(d.file.Domains, Domain{Name: name, Text: src})
		return
	}
	for _, p := range problems {
		if p.Hint == "" { // the YAML parser does not know the kind of file
			p.Hint = "a rule file begins with `version: 1`, then has `rules:`"
		}
		d.problems.Add(p)
		d.broken[lineOf(p.Pos)] = p.Severity == diag.Error
	}
	d.partial = d.partial || problems.HasErrors()
	if root == nil {
		return
	}
	d.trees = append(d.trees, tree{name, d.at, root})
	for _, f := range root.Fields {
		if f.Key.Value == "include" && f.Value.Kind != yamltree.Null {
			d.include(f.Value, name, append(slices.Clone(chain), name))
		}
	}
}

// include reads the files that n, the value of `include` in file, names. chain ends with file.
func (d *decoder) include(n *yamltree.Node, file string, chain []string) {
	const hint = "write `include: rules.d/*.yaml`, or a list of files"
	for _, item := range d.oneOrMore(n, "`include`", hint) {
		text, ok := d.text(item, "a file to include", hint)
		if !ok {
			continue
		}
		if strings.Contains(text, "://") {
			d.fail(item.Pos, "only files can be included, and "+diag.Quote(text)+" is an address", hint)
			continue
		}
		name, ok := d.inLayer(file, text, item.Pos)
		if !ok {
			continue
		}
		if !strings.ContainsAny(text, "*?[") {
			d.readFile(name, item.Pos, chain)
			continue
		}
		found, err := d.layer().glob(name, d.o.Glob)
		if err != nil {
			d.fail(item.Pos, diag.Quote(text)+" is not a pattern of file names: "+err.Error(), hint)
			continue
		}
		found = slices.DeleteFunc(found, IsTest)
		if len(found) == 0 {
			d.warn(item.Pos, "no file is called "+diag.Quote(name), missingFile(chain))
		}
		for _, f := range found {
			// A pattern that also matches its own file means the others.
			if f = d.layer().clean(f); f != file {
				d.readFile(f, item.Pos, chain)
			}
		}
	}
}

// noteFile records that a file belongs to the current layer.
func (d *decoder) noteFile(name string) {
	d.file.Files = appendNew(d.file.Files, name)
	d.file.Layers[d.at] = appendNew(d.file.Layers[d.at], name)
}
