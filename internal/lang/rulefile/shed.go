package rulefile

import (
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// Shed says when requests are refused because there is not the capacity for all of them.
type Shed struct {
	Pos   diag.Pos
	While []Bound // one that is exceeded is enough
	Never Word    // the least important class that is never shed; "" means that any may be
	Mode  Mode
}

// Bound is a signal and what it must not exceed.
type Bound struct {
	Signal Word
	Above  float64 // in the unit of the signal: seconds, requests, share 0 to 1, or as pushed
	Text   string  // as written: cpu > 85%
}

const (
	shedHint  = "write when requests are shed, and which class never is: `shed: { while: [cpu > 85%, inflight > 2000], never: critical }`"
	boundHint = "write a signal above a bound: `cpu > 85%`, `memory > 90%`, `upstream_p99 > 500ms`, `upstream_inflight > 100`, `inflight > 2000` or `load > 4`"
)

// shedSignals are what shedding may go by.
var shedSignals = []string{"cpu", "memory", "upstream_p99", "upstream_inflight", "inflight", "load"}

// fileShed reads when requests are shed whichever rules apply to them.
func (d *decoder) fileShed(root object) {
	d.replaced = d.replacedSettings(root)
	if d.only(root, "shed") != nil {
		d.file.Shed = d.shed(root)
	}
}

// shed reads `shed` of o; nil if there is none, or it is not a map.
func (d *decoder) shed(o object) *Shed {
	d.classesUsed = d.classesUsed || o.has("shed")
	n := o.get("shed")
	if n == nil {
		return nil
	}
	in, ok := d.open(n, &shedPlace)
	if !ok {
		return nil
	}
	s := &Shed{Pos: o.pos("shed")}
	if n := d.need(in, "while", "`shed`", shedHint); n != nil {
		for _, item := range d.oneOrMore(n, "`while`", boundHint) {
			if b, ok := d.bound(item); ok {
				s.While = append(s.While, b)
			}
		}
	}
	if n := in.get("never"); n != nil {
		s.Never = d.neverShed(n)
	}
	if n := in.get("mode"); n != nil {
		if text, ok := d.oneOf(n, "`mode`", "enforce", "shadow"); ok && text == "shadow" {
			s.Mode = Shadow
		}
	}
	return s
}

func (d *decoder) neverShed(n *yamltree.Node) Word {
	text, ok := d.text(n, "`never`", "write the class that is never shed: `never: critical`")
	if !ok {
		return Word{}
	}
	w := Word{text, n.Pos}
	class, ok := d.classNamed(w)
	switch {
	case !ok:
		return Word{}
	case class == len(d.file.Classes)-1:
		d.fail(n.Pos, diag.Quote(text)+" is the least important class, so nothing is ever shed", "name a more important one, as in `never: "+d.file.Classes[0].Name.Text+"`")
	}
	return w
}

// bound reads a signal above a bound, such as cpu > 85%.
func (d *decoder) bound(n *yamltree.Node) (b Bound, ok bool) {
	text, ok := d.text(n, "what requests are shed by", boundHint)
	if !ok {
		return b, false
	}
	name, threshold, above := strings.Cut(text, ">")
	name, threshold = strings.TrimSpace(name), strings.TrimSpace(threshold)
	if !above || threshold == "" || threshold[0] == '=' {
		d.fail(n.Pos, diag.Quote(text)+" does not say above what the signal must be", boundHint)
		return b, false
	}
	if _, ok := d.oneOf(&yamltree.Node{Kind: yamltree.Scalar, Value: name, Pos: n.Pos}, "the signal", shedSignals...); !ok {
		return b, false
	}
	b = Bound{Signal: Word{name, n.Pos}, Text: name + " > " + threshold}
	if b.Above, ok = signalBound(name, threshold); !ok {
		d.fail(n.Pos, diag.Quote(threshold)+" is not a valid bound for "+diag.Quote(name), boundHint)
		return b, false
	}
	if (name == "cpu" || name == "memory") && b.Above >= 1 {
		d.fail(n.Pos, diag.Quote(name)+" is never above 100%", boundHint)
		return b, false
	}
	return b, true
}

// Sheddable returns how many classes of f s may shed, counted from the least important one. It is 1
// if f has no classes: all requests are one class then.
func (f *File) Sheddable(s *Shed) int {
	if len(f.Classes) == 0 {
		return 1
	}
	return len(f.Classes) - 1 - slices.IndexFunc(f.Classes, func(c Class) bool { return s.Never.Text != "" && c.Name.Text == s.Never.Text })
}
