package rulefile

import (
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// wholeShare is every key, in hundredths of a percent.
const wholeShare = 100 * 100

// mode reads into r whether and for which keys it decides, and what is tried beside it: the fields
// mode, enforce and candidate.
func (d *decoder) mode(o object, r *Rule) {
	r.ModePos = o.pos("mode")
	if n := o.get("mode"); n != nil {
		d.modeWord(n, r)
	}
	if n := o.get("enforce"); n != nil {
		d.enforce(o, n, r)
	}
	if n := o.get("candidate"); n != nil && !o.has("deny") {
		if l, ok := d.candidate(n); ok {
			r.Candidate = &l
		}
	}
}

func (d *decoder) modeWord(n *yamltree.Node, r *Rule) {
	switch n.Value {
	case "off", "no", "false":
		d.fail(n.Pos, "`mode` cannot be "+diag.Quote(n.Value), "write `mode: disabled`")
		return
	case "on", "yes", "true":
		d.fail(n.Pos, "`mode` cannot be "+diag.Quote(n.Value), "write `mode: enforce`, which is the default")
		return
	}
	text, ok := d.oneOf(n, "`mode`", "enforce", "shadow", "disabled")
	if ok {
		r.Mode = map[string]Mode{"enforce": Enforce, "shadow": Shadow, "disabled": Disabled}[text]
	}
}

// enforce reads n, the value of `enforce` in o, into r.Share.
func (d *decoder) enforce(o object, n *yamltree.Node, r *Rule) {
	if !o.has("mode") {
		r.ModePos = n.Pos
	}
	share, ok := d.percent(n, "`enforce`", "enforce: 25%")
	switch {
	case !ok:
	case share == 0:
		d.fail(n.Pos, "`enforce` selects nobody at all", "write `mode: shadow` to count without refusing")
	case share > wholeShare:
		d.fail(n.Pos, "`enforce` is more than everybody", "write a share of the keys such as `enforce: 25%`")
	case r.Mode != Enforce:
		d.fail(o.key("enforce"), "`enforce` contradicts `mode`", "take `mode` out: those outside of the share are only counted anyway")
	default:
		r.Share = share
	}
	if per := o.get("per"); ok && per != nil && per.Value == "everyone" && share < wholeShare {
		d.fail(o.key("enforce"), "`per: everyone` is one key, which a share either has or has not", "write `mode: shadow`, or count by something else")
	}
}

// candidate reads n as a limit that is counted beside the one in force.
func (d *decoder) candidate(n *yamltree.Node) (Limit, bool) {
	if n.Kind == yamltree.List {
		d.fail(n.Pos, "a rule has one candidate", "write `candidate: 80/minute`")
		return Limit{}, false
	}
	return d.limit(n)
}
