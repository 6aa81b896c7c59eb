package domainfile

import (
	"fmt"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// Bounds of what is read: no request has descriptors that are deeper, or longer values.
const (
	maxDepth = 32
	maxText  = 4096
)

// Text is a file whose text is at hand.
type Text struct {
	Name string
	Src  []byte
}

// Options are how files are read.
type Options struct {
	// MergeDomains: several files may have descriptors of one domain.
	MergeDomains bool
}

// Read reads the files of one configuration. The File is fit for use only when the list has
// no errors.
func Read(files []Text, o Options) (*File, diag.List) {
	r := &reader{
		options: o,
		file:    &File{lines: make(map[string]diag.Lines)},
		broken:  make(map[diag.Pos]bool),
		domains: make(map[string]*Domain),
	}
	for _, f := range files {
		r.read(f)
	}
	return r.file, r.problems.List()
}

// reader makes a File. It goes on after a problem, so that all are reported at once.
type reader struct {
	options  Options
	file     *File
	problems diag.Tally
	broken   map[diag.Pos]bool // lines with an error of YAML
	domains  map[string]*Domain
	domain   *Domain
}

// fail reports an error, unless YAML has reported one in that line.
func (r *reader) fail(pos diag.Pos, message, hint string) {
	if !r.broken[lineOf(pos)] {
		r.problems.Add(r.file.Problem(pos, diag.Error, message, hint))
	}
}

// where returns pos as a message names another place: FILE:LINE.
func where(pos diag.Pos) string { return fmt.Sprintf("%s:%d", pos.File, pos.Line) }

// lineOf returns pos without its column.
func lineOf(pos diag.Pos) diag.Pos { return diag.Pos{File: pos.File, Line: pos.Line} }

// read reads one file.
func (r *reader) read(f Text) {
	r.file.lines[f.Name] = diag.SplitLines(f.Src)
	root, problems := yamltree.Parse(f.Name, f.Src)
	for _, p := range problems {
		if hint := misplaced(p.Source); hint != "" {
			p.Hint = hint
		} else if p.Hint == "" { // YAML does not know what the file is for
			p.Hint = rootHint
		}
		r.problems.Add(p)
		r.broken[lineOf(p.Pos)] = p.Severity == diag.Error
	}
	if root != nil {
		r.root(root)
	}
}

// root reads a file as a domain with its descriptors.
func (r *reader) root(n *yamltree.Node) {
	o, ok := r.open(n, &rootPlace)
	if !ok {
		return
	}
	name, ok := r.domainName(o)
	if !ok {
		return
	}
	d := r.domains[name.Text]
	switch {
	case d == nil:
		d = &Domain{Name: name}
		r.domains[name.Text] = d
		r.file.Domains = append(r.file.Domains, d)
	case !r.options.MergeDomains:
		r.fail(name.Pos, "the domain "+diag.Quote(name.Text)+" is already at "+where(d.Name.Pos),
			"put the descriptors into one file, or set `rls: { merge_domains: true }` in tidegate.yaml")
		return
	}
	r.domain = d
	if f, ok := o.field("tidegate"); ok {
		r.domainOwn(f)
	}
	if f, ok := o.field("descriptors"); ok {
		d.Descriptors = r.descriptors(f, d.Descriptors, nil)
	}
}

func (r *reader) domainName(o object) (Word, bool) {
	f, ok := o.field("domain")
	if !ok {
		if pos, empty := o.empty["domain"]; empty {
			r.fail(pos, "the domain is empty", rootHint)
		} else if !o.misspelt["domain"] {
			r.fail(o.at, "the file has no domain", rootHint)
		}
		return Word{}, false
	}
	name, ok := r.text(f, "`domain`")
	if ok && name == "" {
		r.fail(f.Value.Pos, "the domain is empty", rootHint)
		ok = false
	}
	return Word{name, f.Value.Pos}, ok
}
