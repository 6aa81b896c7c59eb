package rulefile

import (
	"fmt"
	"slices"
	"time"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// decoder turns YAML trees into a File. It goes on after a problem, so that all problems
// are reported at once, except those that only follow from one already reported.
type decoder struct {
	o         Options
	layers    []Layer
	at        int // index of the layer that is being read
	now       time.Time
	file      *File
	trees     []tree
	problems  diag.Tally
	reported  map[reportKey]bool
	broken    map[diag.Pos]bool     // lines with a YAML error, about which nothing else is reported
	partial   bool                  // not all files could be read
	once      map[string]occurrence // where each setting and name was found last; see define
	ruleAt    map[string]int        // indexes into file.Rules, by name
	listAt    map[string]int        // indexes into file.Lists, by name
	tierAt    map[string]int        // indexes into file.Tiers, by name
	tiersUsed bool                  // a rule uses a tier
	// classesUsed: a rule uses the class of requests. classUnsure: a class has a mistake, so
	// missing classes are not reported.
	classesUsed, classUnsure bool
	addresses                map[*List]bool // whether a list that was examined has only addresses and networks
	fallback                 policies       // what `defaults` sets
	replaced                 []string       // settings of the current file that replace those of earlier layers
	mayBucket                bool           // limits that name no algorithm may become token buckets
	room                     int            // how many more branches may be made for tiers and tables
}

// reportKey identifies a problem, so that it is reported once.
type reportKey struct {
	diag.Pos
	message string
}

func (d *decoder) fail(pos diag.Pos, message, hint string) { d.report(pos, diag.Error, message, hint) }

func (d *decoder) warn(pos diag.Pos, message, hint string) {
	d.report(pos, diag.Warning, message, hint)
}

func (d *decoder) report(pos diag.Pos, s diag.Severity, message, hint string) {
	key := reportKey{pos, message}
	if d.reported[key] || d.broken[lineOf(pos)] {
		return
	}
	if !d.problems.Full(s) { // otherwise it is only counted, perhaps twice
		d.reported[key] = true
	}
	d.problems.Add(d.file.Problem(pos, s, message, hint))
}

// nearest is diag.Nearest for the hint of an error. It returns "" without searching if no
// more errors are printed, as there are so many already.
func (d *decoder) nearest(word string, known []string) string {
	if d.problems.Full(diag.Error) {
		return ""
	}
	return diag.Nearest(word, known)
}

// where returns pos as FILE:LINE, for messages that name another place.
func where(pos diag.Pos) string { return fmt.Sprintf("%s:%d", pos.File, pos.Line) }

// lineOf returns pos without its column.
func lineOf(pos diag.Pos) diag.Pos { return diag.Pos{File: pos.File, Line: pos.Line} }

// Problem returns a problem at pos with its source line, for lint and the compiler, which
// find what is wrong with f later.
func (f *File) Problem(pos diag.Pos, s diag.Severity, message, hint string) diag.Problem {
	return f.lines[pos.File].Problem(pos, s, message, hint)
}

// object is a map in the file, without its unknown fields.
type object struct {
	at     diag.Pos
	fields []knownField // few: they are looked at one by one
	meant  []string     // known fields that an unknown one was probably meant to be
}

// knownField is a field under its current name, word.
type knownField struct {
	word string
	yamltree.Field
}

// field returns a field that is written, even if it is empty.
func (o object) field(word string) (yamltree.Field, bool) {
	for i := range o.fields {
		if o.fields[i].word == word {
			return o.fields[i].Field, true
		}
	}
	return yamltree.Field{}, false
}

// open reads n as a map with the fields of p, and reports unknown fields and those without
// a value. It returns false, and reports that, if n is not a map.
func (d *decoder) open(n *yamltree.Node, p *place) (object, bool) {
	if n.Kind != yamltree.Map {
		d.fail(n.Pos, p.name+" is a map of fields, and this is "+n.What(), "write "+diag.Quote(p.example))
		return object{}, false
	}
	o := object{at: n.Pos, fields: make([]knownField, 0, min(len(n.Fields), len(p.words)))}
	for _, f := range n.Fields {
		word := f.Key.Value
		if now, ok := p.renamed[word]; ok {
			word = d.renamed(f, n, now, p)
		}
		if !slices.Contains(p.words, word) {
			a := p.advise(word)
			o.meant = append(o.meant, a.means)
			d.fail(f.Key.Pos, "unknown field "+diag.Quote(word)+" in "+p.name, a.hint)
			continue
		}
		if f.Value.Kind == yamltree.Null {
			d.fail(f.Key.Pos, "nothing is written after "+diag.Quote(word+":"), emptyHint(word))
		}
		if _, twice := o.field(word); !twice {
			o.fields = append(o.fields, knownField{word, f})
		}
	}
	return o, true
}

// renamed reports a field by its old name, and returns the name that it has now.
func (d *decoder) renamed(f yamltree.Field, in *yamltree.Node, now string, p *place) string {
	old := f.Key.Value
	if slices.ContainsFunc(in.Fields, func(o yamltree.Field) bool { return o.Key.Value == now }) {
		d.fail(f.Key.Pos, diag.Quote(old)+" is the old name of "+diag.Quote(now)+", and both are there", "remove "+diag.Quote(old))
	} else {
		d.warn(f.Key.Pos, diag.Quote(old)+" of "+p.name+" is called "+diag.Quote(now)+" now", "write "+diag.Quote(now)+" in its place")
	}
	return now
}

// has reports whether the field is there, even if it is empty or misspelt.
func (o object) has(word string) bool {
	_, ok := o.field(word)
	return ok || slices.Contains(o.meant, word)
}

// get returns the value of a field; nil means that it is missing or empty.
func (o object) get(word string) *yamltree.Node {
	f, ok := o.field(word)
	if !ok || f.Value.Kind == yamltree.Null {
		return nil
	}
	return f.Value
}

// pos returns where a problem with a field is shown: at its value if that is a scalar,
// otherwise at its name; at the map if the field is missing.
func (o object) pos(word string) diag.Pos {
	f, ok := o.field(word)
	switch {
	case !ok:
		return o.at
	case f.Value.Kind == yamltree.Scalar:
		return f.Value.Pos
	}
	return f.Key.Pos
}

// key returns where the name of a field is, or the map if the field is missing.
func (o object) key(word string) diag.Pos {
	if f, ok := o.field(word); ok {
		return f.Key.Pos
	}
	return o.at
}

// need returns the value of a field, and reports a field that is missing from o, which the
// message calls in. It returns nil if there is no value.
func (d *decoder) need(o object, word, in, hint string) *yamltree.Node {
	if !o.has(word) {
		d.fail(o.at, in+" needs "+diag.Quote(word), hint)
	}
	return o.get(word)
}

// items returns the items of n, and reports if n is not a list or is empty.
func (d *decoder) items(n *yamltree.Node, what, hint string) []*yamltree.Node {
	if n.Kind != yamltree.List {
		d.fail(n.Pos, what+" is a list, and this is "+n.What(), hint)
		return nil
	}
	if len(n.Items) == 0 {
		d.fail(n.Pos, what+" is an empty list", hint)
	}
	return d.withoutEmpty(n.Items, hint)
}

// oneOrMore is items for a field that may also be written as a single item.
func (d *decoder) oneOrMore(n *yamltree.Node, what, hint string) []*yamltree.Node {
	if n.Kind != yamltree.List {
		return []*yamltree.Node{n}
	}
	return d.items(n, what, hint)
}

// withoutEmpty returns items without those that have nothing after their dash, which it
// reports.
func (d *decoder) withoutEmpty(items []*yamltree.Node, hint string) []*yamltree.Node {
	return slices.DeleteFunc(slices.Clone(items), func(n *yamltree.Node) bool {
		if n.Kind == yamltree.Null {
			d.fail(n.Pos, "nothing is written in this item of the list", hint)
		}
		return n.Kind == yamltree.Null
	})
}
