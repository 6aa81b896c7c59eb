package rulefile

import (
	"fmt"
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// Class is a kind of request. The classes of a file are ordered, the most important first. A
// request belongs to the first whose conditions hold; the last has none.
type Class struct {
	Name         Word
	Pos          diag.Pos
	Match        []Pattern // empty means every request
	When, Unless []Condition
}

// maxClasses bounds how many shares of a limit a store has to distinguish.
const maxClasses = 16

const classesHint = "write the classes of requests, the most important first, and the last without a condition: `classes: [{ name: critical, match: POST /v1/charges }, { name: rest }]`"

// classes reads the classes of a file. It keeps those with a mistake, so that rules that name them
// are not reported, too.
func (d *decoder) classes(n *yamltree.Node) {
	items := d.items(n, "`classes`", classesHint)
	switch {
	case len(items) == 1:
		d.fail(items[0].Pos, "a single class is not more important than any other", classesHint)
	case len(items) > maxClasses:
		d.fail(items[maxClasses].Pos, fmt.Sprintf("there are more than %d classes", maxClasses), "join those that are as important as each other: `match`, and the values of a condition, may be lists")
	}
	d.file.Classes = nil
	for i, item := range items {
		o, ok := d.open(item, &classPlace)
		if !ok {
			d.classUnsure = true
			continue
		}
		c := Class{Pos: item.Pos, Name: d.className(o)}
		sc := d.match(o)
		c.Match, c.When, c.Unless = sc.patterns, d.conditions(o, "when", sc), d.conditions(o, "unless", sc)
		always, last := !o.saysAny([]string{"match", "when", "unless"}), i == len(items)-1
		switch {
		case len(items) == 1:
		case always && !last:
			d.fail(item.Pos, "every request is of this class, so those below it have none", "put it last, or write which requests are of it, as in `match: POST /v1/charges`")
		case last && !always:
			d.fail(item.Pos, "the last class has a condition, so some requests are of no class", "add a class for all others below it, such as `- { name: rest }`")
		}
		d.file.Classes = append(d.file.Classes, c)
	}
}

// className reads the name of a class. After a mistake it sets classUnsure and returns "".
func (d *decoder) className(o object) Word {
	const hint = "name it, as in `name: critical`"
	n := d.need(o, "name", "a class", hint)
	if n == nil {
		d.classUnsure = true
		return Word{}
	}
	text, ok := d.text(n, "`name`", hint)
	switch {
	case !ok:
		d.classUnsure = true
		return Word{}
	case strings.Trim(text, nameLetters) != "" || len(text) > 64:
		d.classUnsure = true
		d.fail(n.Pos, diag.Quote(text)+" cannot be the name of a class", "use up to 64 letters, digits, `-` and `_`, such as `critical`")
		return Word{}
	}
	if i := d.file.Class(text); i >= 0 {
		d.fail(n.Pos, "class "+diag.Quote(text)+" is already defined at "+where(d.file.Classes[i].Name.Pos), "give one of the two another name; of one class, `match` and the values of a condition may be lists")
	}
	return Word{text, n.Pos}
}

// Class returns the index of the class of that name; -1 means that there is none.
func (f *File) Class(name string) int {
	return slices.IndexFunc(f.Classes, func(c Class) bool { return c.Name.Text == name })
}

// classNamed returns the index of the class that w names, and false if there is none. It reports
// that unless a class has a mistake.
func (d *decoder) classNamed(w Word) (int, bool) {
	if i := d.file.Class(w.Text); i >= 0 {
		return i, true
	}
	if d.classUnsure {
		return 0, false
	}
	if len(d.file.Classes) == 0 {
		d.fail(w.Pos, "there is no class "+diag.Quote(w.Text)+", as the file has no `classes`", classesHint)
		return 0, false
	}
	var names []string
	for _, c := range d.file.Classes {
		names = append(names, c.Name.Text)
	}
	hint := "the classes are " + strings.Join(names, ", ")
	if near := d.nearest(w.Text, names); near != "" {
		hint = "did you mean " + diag.Quote(near) + "?"
	}
	d.fail(w.Pos, "there is no class "+diag.Quote(w.Text), hint)
	return 0, false
}

// unusedClasses warns if no rule uses the classes.
func (d *decoder) unusedClasses() {
	if len(d.file.Classes) == 0 || d.partial || d.classesUsed {
		return
	}
	d.warn(d.file.Classes[0].Pos, "no rule looks at the class of a request", "write `set_aside: { "+d.file.Classes[0].Name.Text+": 20% }` in a rule, or `shed`, or remove `classes`")
}
