package rulefile

import (
	"strings"
	"unicode"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// Waiver accepts the findings of one check of lint in a rule or in a file, for a reason.
type Waiver struct {
	Check  Word
	Reason string
	Rule   string // "" for the whole file
	In     Extent
}

// Extent is a part of a file: from the place From to the place To, or all of it if To
// is zero.
type Extent struct{ From, To diag.Pos }

// Holds reports whether pos is in e.
func (e Extent) Holds(pos diag.Pos) bool {
	if pos.File != e.From.File {
		return false
	}
	return e.To.Line == 0 || !before(pos, e.From) && !before(e.To, pos)
}

// before reports whether a comes before b in their file.
func before(a, b diag.Pos) bool { return a.Line < b.Line || a.Line == b.Line && a.Col < b.Col }

// extentOf returns the part of the file from the beginning of n to the beginning of the last node in it.
func extentOf(n *yamltree.Node) Extent {
	e := Extent{From: n.Pos, To: n.Pos}
	e.widen(n)
	return e
}

// widen moves To to the beginning of the last node below n, or of n itself.
func (e *Extent) widen(n *yamltree.Node) {
	if before(e.To, n.Pos) {
		e.To = n.Pos
	}
	for _, f := range n.Fields {
		e.widen(f.Key)
		e.widen(f.Value)
	}
	for _, item := range n.Items {
		e.widen(item)
	}
}

const waiveHint = "name the check and say why: `waive: { invented-key: \"the partner's proxy strips it\" }`"

// waive reads the waivers of a rule, or of a file if rule is "", which hold within in. Package lint
// knows which checks there are.
func (d *decoder) waive(o object, rule string, in Extent) {
	n := o.get("waive")
	if n == nil {
		return
	}
	if n.Kind == yamltree.Map && len(n.Fields) == 0 {
		d.fail(o.pos("waive"), "`waive` names no check", waiveHint)
		return
	}
	if n.Kind != yamltree.Map {
		d.fail(o.pos("waive"), "`waive` is a map of checks and reasons, and this is "+n.What(), waiveHint)
		return
	}
	for _, f := range n.Fields {
		what := "the reason to waive " + diag.Quote(f.Key.Value)
		if f.Value.Kind == yamltree.Null {
			d.fail(f.Key.Pos, what+" is missing", waiveHint)
			continue
		}
		reason, ok := d.text(f.Value, what, waiveHint)
		switch {
		case !ok:
		case !strings.ContainsFunc(reason, unicode.IsLetter):
			d.fail(f.Value.Pos, what+" says nothing: "+diag.Quote(reason), waiveHint)
		default:
			d.file.Waive = append(d.file.Waive, Waiver{Check: Word{f.Key.Value, f.Key.Pos}, Reason: reason, Rule: rule, In: in})
		}
	}
}
