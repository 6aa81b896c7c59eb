package envoy

import (
	"strconv"
	"strings"
	"time"

	"tidegate.dev/tidegate"
)

// hold adds a limit to those of r.
func (r *Rule) hold(l *tidegate.Limit, t told) {
	if len(r.Limits) == 0 {
		r.RequestsPerUnit, r.Unit = t.requests, t.unit
	}
	r.Limits = append(r.Limits, l)
	r.told = append(r.told, t)
}

// termsOf returns the terms of a rule. While the store does not answer, an instance goes on counting by
// itself, as native rules do by default.
func termsOf(path string) *tidegate.Terms {
	return &tidegate.Terms{Rule: path, Handling: tidegate.Handling{OnStoreFailure: tidegate.FailLocal}}
}

// counted completes spec with the numbers of t, in windows as envoyproxy/ratelimit has them.
func counted(t told, spec tidegate.Spec) tidegate.Spec {
	if t.requests == 0 {
		spec.Algorithm = tidegate.Deny
		return spec
	}
	spec.Algorithm = tidegate.FixedWindow
	spec.Events, spec.Period = countable(int64(t.requests), t.unit.Period())
	return spec
}

// countable divides a period until its requests can be counted. What passes in all parts
// together is at most what was asked for.
func countable(requests int64, period time.Duration) (int64, time.Duration) {
	parts := int64(1)
	for parts < 16 && requests/parts > tidegate.MaxCount {
		parts *= 2
	}
	return min(requests/parts, tidegate.MaxCount), period / time.Duration(parts)
}

// maxScope bounds what logs show of a rule.
const maxScope = 200

// scope names the counters of a rule, such that no two rules have the same: the domain, then
// each step as key, key=value, key~pattern, or key~~pattern if its values share a counter.
func scope(domain string, steps []step, override bool) string {
	text := "envoy " + word(domain) + ":"
	if override {
		text += " override"
	}
	for _, s := range steps {
		text += " " + word(s.key)
		switch star := newPattern(s.value) != nil; {
		case s.value == "":
		case star && s.shared:
			text += "~~" + word(s.value)
		case star:
			text += "~" + word(s.value)
		default:
			text += "=" + word(s.value)
		}
	}
	if len(text) > maxScope {
		return "envoy " + tidegate.Key(text) // as a hash
	}
	return text
}

// word returns text, in quotes if it has something that scope puts between words, or is a
// word of scope itself.
func word(text string) string {
	plain := text != "" && text != "override"
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("\"\\=~:#", c) >= 0 {
			plain = false
		}
	}
	if plain {
		return text
	}
	return strconv.Quote(text)
}
