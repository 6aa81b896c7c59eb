package rulefile

import (
	"fmt"
	"slices"
	"strings"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

const (
	// maxDeferred bounds the places: the order of all kept requests is in memory.
	maxDeferred = 10_000_000
	// maxDeferredBody bounds a body, which is in memory while it is stored and sent.
	maxDeferredBody = 64 << 20
	// usualBody is the default of max_body.
	usualBody = 1 << 20
)

// deferred reads `defer` of o, the map of r; nil if there is none.
func (d *decoder) deferred(o object, r *Rule) *Defer {
	n := o.get("defer")
	if n == nil {
		return nil
	}
	q := &Defer{Pos: o.pos("defer"), MaxBody: usualBody}
	in, ok := d.open(n, &deferPlace)
	if !ok {
		return q
	}
	if n := in.get("max_body"); n != nil {
		q.MaxBody, _ = d.size(n, "`max_body`", maxDeferredBody, "max_body: 1MB")
	}
	if in.has("to") {
		d.deferTo(in, q)
		return q
	}
	hint := "write " + diag.Quote(deferPlace.example)
	if n := d.need(in, "places", deferPlace.name, hint); n != nil {
		q.Places, _ = d.whole(n, "`places`", 1, maxDeferred, "places: 100000")
	}
	if n := d.need(in, "keep", deferPlace.name, hint); n != nil {
		q.Keep, _ = d.duration(n, "`keep`", tidegate.MaxPeriod, "24h")
	}
	q.PerKey = q.Places
	if !slices.ContainsFunc(r.Per, func(w Word) bool { return w.Text == "everyone" }) {
		q.PerKey = max(1, q.Places/10) // so that one caller cannot take all places
	}
	if n := in.get("per_key"); n != nil {
		if q.PerKey, ok = d.whole(n, "`per_key`", 1, maxDeferred, "per_key: 100"); ok && q.PerKey > q.Places && q.Places > 0 {
			d.fail(n.Pos, fmt.Sprintf("`per_key` is %d, and there are only %d places for all keys together", q.PerKey, q.Places), "lower `per_key`, or raise `places`")
		}
	}
	return q
}

// deferTo reads `to: stream NAME` and the fields beside it into q. The readers of the stream decide
// how long entries are kept.
func (d *decoder) deferTo(in object, q *Defer) {
	const hint = "write `to: stream orders`, with the key of a Redis Stream"
	for _, word := range []string{"keep", "per_key"} {
		if in.has(word) {
			d.fail(in.key(word), diag.Quote(word)+" means nothing with `to`: whoever reads the stream decides", "take out "+diag.Quote(word)+", or `to`")
		}
	}
	if n := in.get("places"); n != nil {
		q.Places, _ = d.whole(n, "`places`", 1, maxDeferred, "places: 100000")
	}
	n := in.get("to")
	if n == nil {
		return
	}
	text, ok := d.text(n, "`to`", hint)
	if !ok {
		return
	}
	kind, name, _ := strings.Cut(text, " ")
	name = strings.TrimSpace(name)
	if kind != "stream" || name == "" || strings.ContainsAny(name, " \t") || len(name) > 200 {
		d.fail(n.Pos, "`to` cannot be "+diag.Quote(text), hint)
		return
	}
	q.Stream = name
}

// checkDefer reports fields that `defer` cannot be combined with.
func (d *decoder) checkDefer(o object, r *Rule) {
	if r.Defer == nil {
		return
	}
	if r.Block != 0 {
		d.fail(o.key("block"), "`block` keeps out who was refused, and `defer` keeps what was refused", "take out one of the two")
	}
	d.noCountRejected(&r.Terms)
	for i := range r.For {
		d.noCountRejected(&r.For[i].Terms)
	}
}

// noCountRejected reports count_rejected: every attempt of a waiting request would be counted, and
// none would ever pass.
func (d *decoder) noCountRejected(t *Terms) {
	if t.Limits == nil {
		return
	}
	for i := range t.Limits.All {
		if l := &t.Limits.All[i]; l.Spec.CountRejected {
			d.fail(l.Pos, "`count_rejected` would count every try of a request that `defer` keeps", "take out one of the two")
			return
		}
	}
}

// size parses n as bytes, as in 1MB, 64KiB or 4096, from 1 to largest.
func (d *decoder) size(n *yamltree.Node, what string, largest int64, example string) (int64, bool) {
	hint := "write a size such as " + diag.Quote(example)
	text, ok := d.text(n, what, hint)
	if !ok {
		return 0, false
	}
	number := strings.TrimSuffix(text, "B")
	factor := int64(1)
	for suffix, times := range map[string]int64{"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "K": 1000, "M": 1e6, "G": 1e9} {
		if rest, ok := strings.CutSuffix(number, suffix); ok {
			number, factor = rest, times
			break
		}
	}
	v, why, _ := wholeNumber(strings.TrimSpace(number))
	switch {
	case why != "":
		d.fail(n.Pos, what+" is not a size: "+diag.Quote(text), hint)
	case v < 1 || v > largest/factor:
		d.fail(n.Pos, fmt.Sprintf("%s is %s, and must be from 1B to %dMiB", what, text, largest>>20), hint)
	default:
		return v * factor, true
	}
	return 0, false
}
