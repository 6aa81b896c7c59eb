package rulefile

import (
	"fmt"
	"slices"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

const fromHint = "write `limits: { from: jwt.rpm, per: minute, max: 10000, else: 100 }`"

// limitFrom reads a limit whose number comes from the caller.
func (d *decoder) limitFrom(o object) (Limit, bool) {
	l := Limit{Pos: o.pos("from"), From: &From{}}
	ok := true
	for _, word := range []string{"rate", "burst"} {
		if o.has(word) {
			d.fail(o.key(word), diag.Quote(word)+" cannot be used with `from`, which gives the number", fromHint)
			ok = false
		}
	}
	if n := o.get("from"); n == nil {
		ok = false
	} else if l.From.Source, ok = d.believed(n, "its own limit"); ok {
		l.Text = "from " + l.From.Source.Text
	}
	if n := d.need(o, "per", "a limit with `from`", fromHint); n == nil {
		ok = false
	} else if text, fine := d.text(n, "`per`", "write `per: minute`"); !fine {
		ok = false
	} else if l.From.Period, fine = d.period(n.Pos, text, text); !fine {
		ok = false
	}
	numbers := []struct {
		word string
		to   *int64
	}{{"max", &l.From.Max}, {"else", &l.From.Else}}
	for _, number := range numbers {
		n := d.need(o, number.word, "a limit with `from`", fromHint)
		if n == nil {
			ok = false
			continue
		}
		v, fine := d.whole(n, diag.Quote(number.word), 1, tidegate.MaxCount, number.word+": 100")
		*number.to, ok = v, ok && fine
	}
	l.Spec = tidegate.Spec{Events: l.From.Else, Period: l.From.Period}
	ok = d.algorithm(o, &l.Spec) && ok
	ok = ok && d.details(o, &l.Spec) && d.refill(o, &l.Spec)
	if !ok {
		return l, false
	}
	if l.From.Else > l.From.Max {
		d.fail(o.pos("else"), fmt.Sprintf("`else` is %d, above `max`, which is %d", l.From.Else, l.From.Max), "make `else` at most `max`: it is for callers without a number")
		return l, false
	}
	text := fmt.Sprintf("%d/%s", l.From.Max, l.From.Period)
	return l, d.slowEnough(o.pos("max"), text, l.From.Max, l.From.Period)
}

// believed reads n as a source whose value the caller cannot choose.
func (d *decoder) believed(n *yamltree.Node, what string) (Source, bool) {
	if id, ok := d.file.Identity(n.Value); ok && len(id.Sources) > 0 && !id.Sources[0].always() {
		d.fail(n.Pos, "this needs the source itself, not a name of `identify`", "write "+diag.Quote(id.Sources[0].Text))
		return Source{}, false
	}
	s, ok := d.source(n, "")
	if !ok || !d.unspelled(s) {
		return s, false
	}
	if s.Kind == SourceHeader || s.Kind == SourceJWT || s.Kind == SourceAPIKey || s.Kind == SourceDescriptor {
		return s, true
	}
	message := diag.Quote(s.Text) + " is not a number that can be trusted"
	if slices.Contains([]SourceKind{SourceClientHeader, SourceCookie, SourceQuery, SourceBody, SourceMetadata, SourcePathWildcard, SourceJWTUnverified}, s.Kind) {
		message = "the caller chooses " + diag.Quote(s.Text) + ", and would choose " + what + " with it"
	}
	d.fail(n.Pos, message, "take it from `jwt.CLAIM`, from `api_key.ATTRIBUTE`, from `header NAME` of a trusted proxy, or from `descriptor NAME`")
	return s, false
}
