package rulefile

import (
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// occurrence is where a name or a setting was found, and the index of its layer.
type occurrence struct {
	pos   diag.Pos
	layer int
}

// settingWords are the fields of a rule file that all its rules share.
var settingWords = []string{"defaults", "classes", "shed", "respond", "headers", "instances"}

// replaces reads `replace` of a rule, tier, list or identity, and reports whether it is true.
func (d *decoder) replaces(o object) bool {
	n := o.get("replace")
	if n == nil {
		return false
	}
	const hint = "write `replace: true` to take the place of what an earlier layer has by this name, or remove the field"
	text, ok := d.text(n, "`replace`", hint)
	if ok && text != "true" {
		d.fail(n.Pos, "`replace` cannot be "+diag.Quote(text), hint)
	}
	return ok && text == "true"
}

// replacedSettings reads which settings of a file take the place of those of earlier layers.
func (d *decoder) replacedSettings(root object) (words []string) {
	const hint = "write which settings of this file replace those of earlier layers: `replace: [instances]`"
	for _, w := range d.names(root, "replace", hint) {
		switch {
		case !slices.Contains(settingWords, w.Text):
			d.fail(w.Pos, diag.Quote(w.Text)+" is not a setting of a rule file", "name "+diag.Choice(settingWords)+"; a rule, tier, list or identity says `replace: true` itself")
		case !root.has(w.Text):
			d.fail(w.Pos, "this file does not set "+diag.Quote(w.Text), "set it, or remove it from `replace`")
		default:
			words = append(words, w.Text)
		}
	}
	return words
}

// define notes that what, such as "rule `api`", is found at pos. It returns true if that is allowed,
// because what is the first of its name or replaces one of an earlier layer; otherwise it reports
// the mistake. hint is for two in one layer.
func (d *decoder) define(what string, pos diag.Pos, replace bool, hint string) (ok bool) {
	before, again := d.once[what]
	switch {
	case !again:
		if replace {
			d.warn(pos, "`replace` does nothing here: no earlier layer has "+what, "check the name; to read the layers together, name all of them in their order")
		}
	case before.layer == d.at:
		d.fail(pos, taken(what)+where(before.pos), hint)
		return false
	case !replace:
		d.fail(pos, taken(what)+where(before.pos)+", in an earlier layer", replaceHint(what))
		return false
	}
	d.once[what] = occurrence{pos, d.at}
	return true
}

// taken returns the message about a second what, up to where the first is.
func taken(what string) string {
	if name, ok := strings.CutPrefix(what, "identity "); ok {
		what = name
	}
	if name, ok := strings.CutPrefix(what, "setting "); ok {
		return name + " is already set at "
	}
	return what + " is already defined at "
}

func replaceHint(what string) string {
	kind, name, _ := strings.Cut(what, " ")
	name = strings.Trim(name, "`")
	switch kind {
	case "setting":
		return "keep one of the two, or write " + diag.Quote("replace: ["+name+"]") + " at the top of this file"
	case "list":
		return "give one of the two another name, or write " + diag.Quote(name+": { values: […], replace: true }")
	case "identity":
		return "give one of the two another name, or write " + diag.Quote(name+": { from: …, replace: true }")
	}
	return "give one of the two another name, or write `replace: true` in this one to take the place of the other"
}

// put adds a rule, or puts it in the place of the one that it replaces.
func (d *decoder) put(r *Rule, o object) {
	i, again := d.ruleAt[r.Name.Text]
	if !again || r.Name.Text == "" || d.file.Rules[i].layer == d.at || !d.replaces(o) {
		d.ruleAt[r.Name.Text] = len(d.file.Rules)
		d.file.Rules = append(d.file.Rules, r)
		return
	}
	// The waivers of the rule that is gone go with it.
	gone := d.file.Rules[i].Name.Pos
	d.file.Waive = slices.DeleteFunc(d.file.Waive, func(w Waiver) bool { return w.Rule == r.Name.Text && w.In.Holds(gone) })
	d.file.Rules[i] = r
}

// unwrapped returns the value of a list or an identity. That is n itself, with the word "", unless n
// is a map, as it has to be with `replace`: then it is the value of the first of words that the map
// has, and that word. The value is nil if the map has none of them.
func (d *decoder) unwrapped(n *yamltree.Node, p *place, words ...string) (value *yamltree.Node, word string, replace bool) {
	if n.Kind != yamltree.Map {
		return n, "", false
	}
	o, ok := d.open(n, p)
	if !ok {
		return nil, "", false
	}
	replace = d.replaces(o)
	for _, w := range words {
		if o.get(w) == nil {
			continue
		}
		if value != nil {
			d.fail(o.key(w), p.name+" has "+diag.Quote(word)+" and "+diag.Quote(w), "keep one of the two")
			continue
		}
		value, word = o.get(w), w
	}
	if value == nil && !slices.ContainsFunc(words, o.has) {
		d.fail(n.Pos, p.name+" that is written as a map needs "+diag.Choice(words), "write "+diag.Quote(p.example))
	}
	return value, word, replace
}
