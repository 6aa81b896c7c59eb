package rulefile

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

const (
	listsHint = "write `lists: { partners: [203.0.113.0/24], banned: file banned.txt }`"
	// maxListProblems is how many problems of one list file are reported: a file that is not
	// a list at all has one per line.
	maxListProblems = 10
)

// lists reads the field `lists`.
func (d *decoder) lists(root object) {
	n := root.get("lists")
	if n == nil {
		return
	}
	if n.Kind != yamltree.Map {
		d.fail(n.Pos, "`lists` is a map of names, and this is "+n.What(), listsHint)
		return
	}
	for _, f := range n.Fields {
		name := f.Key.Value
		if strings.Trim(name, nameLetters+".") != "" || len(name) > 64 || name == "" {
			d.fail(f.Key.Pos, diag.Quote(name)+" is not a name for a list", "use up to 64 letters, digits, `.`, `-` and `_`, such as `partners`")
			continue
		}
		n, word, replace := d.unwrapped(f.Value, &listPlace, "values", "file")
		if !d.define("list "+diag.Quote(name), f.Key.Pos, replace, "keep one of the two, or give one another name") {
			continue
		}
		l := List{Name: Word{name, f.Key.Pos}}
		switch {
		case n == nil: // already reported
		case word == "file":
			if file, ok := d.text(n, "`file`", "write the name of a file with a value per line: `file: banned.txt`"); ok {
				d.readList(&l, n.Pos, file)
			}
		case word == "values":
			d.fillValues(&l, n)
		default:
			d.fillList(&l, n)
		}
		if i, again := d.listAt[name]; again {
			d.file.Lists[i] = l
			continue
		}
		d.listAt[name] = len(d.file.Lists)
		d.file.Lists = append(d.file.Lists, l)
	}
}

// list returns the list with a name, or nil.
func (d *decoder) list(name string) *List {
	if i, ok := d.listAt[name]; ok {
		return &d.file.Lists[i]
	}
	return nil
}

// fillList reads the short form of a list: its values, or `file NAME`.
func (d *decoder) fillList(l *List, n *yamltree.Node) {
	switch n.Kind {
	case yamltree.List:
		d.fillValues(l, n)
	case yamltree.Scalar:
		file, ok := strings.CutPrefix(strings.TrimSpace(n.Value), "file ")
		if !ok {
			d.fail(n.Pos, "list "+diag.Quote(l.Name.Text)+" is neither a list nor a file", "write "+diag.Quote("["+n.Value+"]")+", or `file banned.txt`")
			return
		}
		d.readList(l, n.Pos, strings.TrimSpace(file))
	default:
		d.fail(l.Name.Pos, "list "+diag.Quote(l.Name.Text)+" is "+n.What(), listsHint)
	}
}

// fillValues reads the values of a list from n, which has one or several.
func (d *decoder) fillValues(l *List, n *yamltree.Node) {
	for _, item := range d.withoutEmpty(d.oneOrMore(n, "`values`", listsHint), listsHint) {
		if text, ok := d.text(item, "a value of a list", listsHint); ok {
			d.addValue(l, Word{text, item.Pos})
		}
	}
}

// readList reads the file of a list, one value per line. Unlike a rule file, it may be read
// twice: two lists may name the same file.
func (d *decoder) readList(l *List, from diag.Pos, name string) {
	file, ok := d.inLayer(from.File, name, from)
	if !ok {
		return
	}
	l.File = d.layer().clean(file)
	d.noteFile(l.File)
	src, err := d.layer().read(l.File, d.o.ReadFile)
	switch {
	case err != nil:
		d.fail(from, "cannot read "+diag.Quote(l.File)+": "+diag.Reason(err), "names are relative to the folder of "+diag.Quote(from.File)+"; the file has a value per line")
		return
	case len(src) > MaxBytes:
		d.fail(from, fmt.Sprintf("%s is larger than %d MiB", diag.Quote(l.File), MaxBytes>>20), "name networks instead of addresses: `203.0.113.0/24`")
		return
	case !utf8.Valid(src):
		d.fail(from, diag.Quote(l.File)+" is not UTF-8 text", "the file has a value per line, and # starts a comment")
		return
	}
	lines := diag.SplitLines(src)
	d.file.lines[l.File] = lines
	bad := 0
	for i, line := range lines {
		line, _, _ = strings.Cut(" "+strings.ReplaceAll(line, "\t", " "), " #") // the space: a comment may be all there is
		text := strings.TrimSpace(line)
		if text == "" {
			continue
		}
		col := utf8.RuneCountInString(line[:strings.Index(line, text)]) // counts from 1, as the space was added in front
		if !d.addLine(l, Word{text, diag.Pos{File: l.File, Line: i + 1, Col: col, Len: utf8.RuneCountInString(text)}}) {
			if bad++; bad == maxListProblems {
				d.fail(from, diag.Quote(l.File)+" has more lines like these", "the file has a value per line: an address, a network such as `203.0.113.0/24`, or a name")
				return
			}
		}
	}
}

// appendNew appends s, unless all has it.
func appendNew(all []string, s string) []string {
	for _, a := range all {
		if a == s {
			return all
		}
	}
	return append(all, s)
}

// addLine adds a line of a file to the list, or reports what is wrong with it and returns false. Quotes
// and dashes of YAML would be part of the value, which nobody has.
func (d *decoder) addLine(l *List, w Word) bool {
	bare := strings.TrimPrefix(w.Text, "- ")
	if n := len(bare); n > 1 && bare[0] == bare[n-1] && strings.IndexByte(`"'`, bare[0]) >= 0 {
		bare = bare[1 : n-1]
	}
	if bare != w.Text {
		d.fail(w.Pos, "a file has values as they are, without dashes and quotes: "+diag.Quote(w.Text), "write "+diag.Quote(bare))
		return false
	}
	return d.addValue(l, w)
}

// addValue adds a value to the list, or reports what is wrong with it and returns false.
func (d *decoder) addValue(l *List, w Word) bool {
	t, wrong := parseValue(w)
	if wrong != (mistake{}) {
		d.fail(w.Pos, wrong.message, wrong.hint)
		return false
	}
	if t.Kind == TestLiteral && strings.HasPrefix(w.Text, "file ") && l.File == "" {
		d.fail(w.Pos, "a file cannot be one of several values", "write "+diag.Quote(l.Name.Text+": "+w.Text)+" without brackets")
		return false
	}
	l.Values = append(l.Values, w)
	l.Tests = append(l.Tests, t)
	return true
}
