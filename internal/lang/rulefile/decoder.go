package rulefile

import (
	"fmt"
	"slices"
	"time"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// decoder turns trees into a File. It goes on after a problem, so that all of
// them are told at once, and leaves out what would only follow from one already
// told.
type decoder struct {
	o         Options
	now       time.Time
	file      *File
	trees     []tree
	problems  diag.Tally
	told      map[told]bool
	broken    map[diag.Pos]bool   // lines that YAML did not understand: not judged again
	partial   bool                // not all files could be read
	once      map[string]diag.Pos // where a setting of the whole set was said
	listAt    map[string]int      // where in file.Lists a list is, by name
	addresses map[*List]bool      // lists of addresses and networks alone
	fallback  policies            // of defaults
}

// told is a problem that need not be told again.
type told struct {
	diag.Pos
	message string
}

func (d *decoder) fail(pos diag.Pos, message, hint string) { d.tell(pos, diag.Error, message, hint) }

func (d *decoder) warn(pos diag.Pos, message, hint string) { d.tell(pos, diag.Warning, message, hint) }

func (d *decoder) tell(pos diag.Pos, s diag.Severity, message, hint string) {
	key := told{pos, message}
	if d.told[key] || d.broken[lineOf(pos)] {
		return
	}
	if !d.problems.Full(s) { // else it is only counted, perhaps twice
		d.told[key] = true
	}
	d.problems.Add(d.file.Problem(pos, s, message, hint))
}

// nearest is diag.Nearest for the hint of an error that will be told.
func (d *decoder) nearest(word string, known []string) string {
	if d.problems.Full(diag.Error) {
		return ""
	}
	return diag.Nearest(word, known)
}

// where is pos as problems name another place.
func where(pos diag.Pos) string { return fmt.Sprintf("%s:%d", pos.File, pos.Line) }

// lineOf is pos without its column.
func lineOf(pos diag.Pos) diag.Pos { return diag.Pos{File: pos.File, Line: pos.Line} }

// Problem is for what is found wrong with f later, by lint or by the compiler.
func (f *File) Problem(pos diag.Pos, s diag.Severity, message, hint string) diag.Problem {
	return f.lines[pos.File].Problem(pos, s, message, hint)
}

// object is a map of the file with only the fields that may be there.
type object struct {
	at     diag.Pos
	fields map[string]yamltree.Field
	meant  map[string]bool // fields that a misspelt one was probably meant to be
}

// open takes n as a map with the words of p, and tells of all other words.
func (d *decoder) open(n *yamltree.Node, p *place) (object, bool) {
	if n.Kind != yamltree.Map {
		d.fail(n.Pos, p.name+" is a map of fields, and this is "+n.What(), "write "+diag.Quote(p.example))
		return object{}, false
	}
	o := object{at: n.Pos, fields: make(map[string]yamltree.Field, len(n.Fields)), meant: make(map[string]bool)}
	for _, f := range n.Fields {
		word := f.Key.Value
		if !slices.Contains(p.words, word) {
			a := p.advise(word)
			o.meant[a.means] = true
			d.fail(f.Key.Pos, "unknown field "+diag.Quote(word)+" in "+p.name, a.hint)
			continue
		}
		if f.Value.Kind == yamltree.Null {
			d.fail(f.Key.Pos, "nothing is written after "+diag.Quote(word+":"), emptyHint(word))
		}
		if _, twice := o.fields[word]; !twice {
			o.fields[word] = f
		}
	}
	return o, true
}

// has reports whether the field is there, whatever it says.
func (o object) has(word string) bool {
	_, ok := o.fields[word]
	return ok || o.meant[word]
}

// get returns the value of a field, nil when there is none.
func (o object) get(word string) *yamltree.Node {
	f, ok := o.fields[word]
	if !ok || f.Value.Kind == yamltree.Null {
		return nil
	}
	return f.Value
}

// pos is where to point at for a field: at what a reader sees first of it.
func (o object) pos(word string) diag.Pos {
	f, ok := o.fields[word]
	switch {
	case !ok:
		return o.at
	case f.Value.Kind == yamltree.Scalar:
		return f.Value.Pos
	}
	return f.Key.Pos
}

// key is where the word itself stands.
func (o object) key(word string) diag.Pos {
	if f, ok := o.fields[word]; ok {
		return f.Key.Pos
	}
	return o.at
}

// need returns the value of a field that must be there.
func (d *decoder) need(o object, word, in, hint string) *yamltree.Node {
	if !o.has(word) {
		d.fail(o.at, in+" needs "+diag.Quote(word), hint)
	}
	return o.get(word)
}

// items takes n as a list that is not empty.
func (d *decoder) items(n *yamltree.Node, what, hint string) []*yamltree.Node {
	if n.Kind != yamltree.List {
		d.fail(n.Pos, what+" is a list, and this is "+n.What(), hint)
		return nil
	}
	if len(n.Items) == 0 {
		d.fail(n.Pos, what+" is an empty list", hint)
	}
	return d.filled(n.Items, hint)
}

// oneOrMore takes n as a list that is not empty, or as its only item.
func (d *decoder) oneOrMore(n *yamltree.Node, what, hint string) []*yamltree.Node {
	if n.Kind != yamltree.List {
		return []*yamltree.Node{n}
	}
	return d.items(n, what, hint)
}

// filled leaves out items after whose dash nothing is written.
func (d *decoder) filled(items []*yamltree.Node, hint string) []*yamltree.Node {
	return slices.DeleteFunc(slices.Clone(items), func(n *yamltree.Node) bool {
		if n.Kind == yamltree.Null {
			d.fail(n.Pos, "nothing is written in this item of the list", hint)
		}
		return n.Kind == yamltree.Null
	})
}
