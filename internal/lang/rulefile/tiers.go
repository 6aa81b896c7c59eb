package rulefile

import (
	"fmt"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// Tier is terms that any rule can use, by a name.
type Tier struct {
	Name   Word
	Terms  Terms
	object object // the map that it was read from
}

// TierUse is how a rule chooses a tier.
type TierUse struct {
	Pos  diag.Pos
	From Word // the identity whose value names the tier
	Else Word // the tier of a request whose value names none
}

const (
	tiersHint = "write names with what each has: `tiers: { free: { limits: 60/minute }, pro: { limits: 1000/minute } }`"
	tierHint  = "write which identity names the tier, and the tier of all others: `tier: { from: plan, else: free }`"
)

// tiers reads the tiers of one file.
func (d *decoder) tiers(root object) {
	n := root.get("tiers")
	if n == nil {
		return
	}
	if n.Kind != yamltree.Map {
		d.fail(n.Pos, "`tiers` is a map of names, and this is "+n.What(), tiersHint)
		return
	}
	d.mayBucket = true
	for _, f := range n.Fields {
		name := f.Key.Value
		if name == "" || name == otherRow || len(name) > 64 {
			d.fail(f.Key.Pos, diag.Quote(name)+" cannot be the name of a tier", "use up to 64 letters, as in `free`; `else` is what a rule says for all others")
			continue
		}
		t := Tier{Name: Word{name, f.Key.Pos}}
		replace := false
		if f.Value.Kind == yamltree.Null {
			d.fail(f.Key.Pos, "nothing is written after "+diag.Quote(name+":"), tiersHint)
		} else if in, ok := d.open(f.Value, &tierPlace); ok {
			t.object = in
			replace = d.replaces(in)
			t.Terms = d.terms(in, scope{unsure: true})
			if !in.saysAny(termWords) {
				d.fail(f.Value.Pos, "tier "+diag.Quote(name)+" says nothing", "write what it has: "+diag.Choice(termWords))
			}
		}
		if !d.define("tier "+diag.Quote(name), f.Key.Pos, replace, "give one of the two another name") {
			continue
		}
		if i, again := d.tierAt[name]; again {
			d.file.Tiers[i] = t
			continue
		}
		// Kept even after a mistake, so that rules that use it are not reported as well.
		d.tierAt[name] = len(d.file.Tiers)
		d.file.Tiers = append(d.file.Tiers, t)
	}
}

// tier reads how a rule chooses its tier; nil if it does not, or after a mistake.
func (d *decoder) tier(o object, sc scope) *TierUse {
	d.tiersUsed = d.tiersUsed || o.has("tier")
	n := o.get("tier")
	if n == nil {
		return nil
	}
	if n.Kind == yamltree.Scalar {
		d.fail(n.Pos, "`tier` says which identity names the tier, and "+diag.Quote(n.Value)+" does not", tierHint)
		return nil
	}
	in, ok := d.open(n, &tierUsePlace)
	if !ok {
		return nil
	}
	use := &TierUse{Pos: o.pos("tier")}
	if n := d.need(in, "from", "`tier`", tierHint); n != nil {
		use.From, ok = d.column(n, "`from` of a tier", sc)
	} else {
		ok = false
	}
	if n := d.need(in, "else", "`tier`", tierHint); n != nil {
		text, fine := d.text(n, "`else`", tierHint)
		use.Else = Word{text, n.Pos}
		ok = fine && d.tierKnown(use.Else) && ok
	} else {
		ok = false
	}
	if !ok {
		return nil
	}
	d.tiersApart(use)
	return use
}

// tiersApart reports a tier that would never be chosen, or not for certain: if all its spellings by the
// identity by which use chooses are those of tiers before it, or one of them is that of the tier for all others.
func (d *decoder) tiersApart(use *TierUse) {
	id, _ := d.file.Identity(use.From.Text)
	rest := make(map[string]bool)
	for _, text := range id.spellings(use.Else.Text) {
		rest[text] = true
	}
	first := make(map[string]string, len(d.file.Tiers))
	for _, t := range d.file.Tiers {
		if t.Name.Text == use.Else.Text {
			continue
		}
		alike, free := "", false
		for _, text := range id.spellings(t.Name.Text) {
			other, had := first[text]
			switch {
			case rest[text]:
				d.spelledAlike(use, use.Else.Text, t.Name.Text)
				return
			case had:
				alike = other
			default:
				first[text], free = t.Name.Text, true
			}
		}
		if !free {
			d.spelledAlike(use, alike, t.Name.Text)
			return
		}
	}
}

func (d *decoder) spelledAlike(use *TierUse, one, other string) {
	d.fail(use.From.Pos, fmt.Sprintf("%s spells the tiers %s and %s alike", diag.Quote(use.From.Text), diag.Quote(one), diag.Quote(other)), "give one of the two another name")
}

// tierKnown reports whether there is a tier of that name. If not, that is reported as a mistake.
func (d *decoder) tierKnown(w Word) bool {
	if _, ok := d.tierAt[w.Text]; ok {
		return true
	}
	var names []string
	for _, t := range d.file.Tiers {
		names = append(names, t.Name.Text)
	}
	hint := "say it at the top of the file: " + diag.Quote("tiers: { "+w.Text+": { limits: 60/minute } }")
	if near := d.nearest(w.Text, names); near != "" {
		hint = "did you mean " + diag.Quote(near) + "?"
	} else if len(names) > 0 {
		hint = "the tiers are " + strings.Join(names, ", ") + "; or " + hint
	}
	d.fail(w.Pos, "there is no tier "+diag.Quote(w.Text), hint)
	return false
}

// column reads n as the name of an identity by whose values something is chosen.
func (d *decoder) column(n *yamltree.Node, what string, sc scope) (Word, bool) {
	id, ok := d.known(n, what)
	if !ok || !d.findable(n.Pos, id, sc) {
		return Word{}, false
	}
	w := Word{strings.TrimSpace(n.Value), n.Pos}
	for _, s := range id.Sources {
		switch s.Kind {
		case SourceIP, SourceEveryone, SourcePath:
			d.fail(n.Pos, diag.Quote(w.Text)+" has no values that can be listed one by one", "name an identity such as `plan: jwt.plan`; for addresses write `for: [{ when: { ip: in LIST }, limits: … }]`")
			return w, false
		}
	}
	return w, true
}

// unusedTiers warns if no rule uses the tiers.
func (d *decoder) unusedTiers() {
	if len(d.file.Tiers) > 0 && !d.tiersUsed && !d.partial {
		d.warn(d.file.Tiers[0].Name.Pos, "no rule uses the tiers", "write `tier: { from: plan, else: "+d.file.Tiers[0].Name.Text+" }` in a rule, or remove `tiers`")
	}
}
