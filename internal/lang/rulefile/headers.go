package rulefile

import (
	"slices"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// noDialect is the word for no headers at all.
const noDialect = "none"

// dialects never change their meaning: a later draft gets a word of its own.
var dialects = []string{"draft11", "draft6", "x", noDialect}

// headers reads into the file which headers tell clients about their limits.
func (d *decoder) headers(n *yamltree.Node, pos diag.Pos) {
	in, ok := d.open(n, &headersPlace)
	if !ok {
		return
	}
	h := Headers{Pos: pos}
	whole := true // every dialect could be read
	if n := in.get("dialect"); n != nil {
		h.Dialects, whole = d.dialects(n)
	}
	if n := in.get("reset"); n != nil {
		h.Reset, _ = d.oneOf(n, "`reset`", "delta", "epoch")
	}
	if n := in.get("retry_jitter"); n != nil {
		h.RetryJitter, h.JitterPos = d.retryJitter(n), in.key("retry_jitter")
	}
	tellsEpoch := slices.Contains(h.Dialects, "x") || slices.Contains(h.Dialects, "draft6")
	if h.Reset == "epoch" && whole && len(h.Dialects) > 0 && !tellsEpoch {
		d.fail(in.key("reset"), "the dialect "+diag.Quote(h.Dialects[0])+" does not tell times as epoch", "take `reset` out, or write `dialect: x` or `dialect: draft6`")
	}
	d.file.Headers = h
}

// dialects returns the dialects that are fine, and whether all of them are.
func (d *decoder) dialects(n *yamltree.Node) (written []string, ok bool) {
	const hint = "write `dialect: draft11`, or several as in `dialect: [draft11, x]`"
	items := d.oneOrMore(n, "`dialect`", hint)
	ok = len(items) > 0
	for _, item := range items {
		word, known := d.oneOf(item, "`dialect`", dialects...)
		switch {
		case !known:
		case slices.Contains(written, word):
			d.fail(item.Pos, diag.Quote(word)+" is in the list twice", "take one of them out")
			known = false
		case word == noDialect && len(items) > 1:
			d.fail(item.Pos, "`none` means no such headers, and there are other dialects in the list", "take `none` out, or write `dialect: none` alone")
			known = false
		}
		if ok = ok && known; known {
			written = append(written, word)
		}
	}
	return written, ok
}

// retryJitter reads a share of the window. A written value takes precedence over the front end's
// default, so 0% is returned as a negative number.
func (d *decoder) retryJitter(n *yamltree.Node) float64 {
	hundredths, ok := d.percent(n, "`retry_jitter`", "retry_jitter: 10%")
	switch {
	case !ok:
		return 0
	case hundredths > wholeShare:
		d.fail(n.Pos, "`retry_jitter` is "+diag.Quote(n.Value)+", and must be from 0% to 100%: it is a share of the window", "write `retry_jitter: 10%`")
		return 0
	case hundredths == 0:
		return -1
	}
	return float64(hundredths) / wholeShare
}

// jitterSpreads warns if retry_jitter has no effect.
func (d *decoder) jitterSpreads() {
	if h := d.file.Headers; h.RetryJitter <= 0 || d.partial || slices.ContainsFunc(d.file.Rules, aligned) {
		return
	}
	d.warn(d.file.Headers.JitterPos, "`retry_jitter` spreads nothing: no rule has a `fixed_window` or a `quota`", "take it out; callers of other limits come back at different times anyway")
}

// aligned reports whether refused callers of r wait for the same moment: the end of a window.
func aligned(r *Rule) bool {
	has := func(t Terms) bool {
		return t.Quota != nil || t.Limits != nil && slices.ContainsFunc(t.Limits.All, func(l Limit) bool { return l.Spec.Algorithm == tidegate.FixedWindow })
	}
	return has(r.Terms) || slices.ContainsFunc(r.For, func(b Branch) bool { return has(b.Terms) })
}
