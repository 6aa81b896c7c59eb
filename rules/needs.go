package rules

import (
	"slices"
	"strings"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// Need is something that a rule needs from a front end or from the fleet beyond counting. Those
// that cannot provide it say so when the rules are loaded.
type Need struct {
	Rule string
	// Field of the rule: "queue", "defer", "concurrency", "count", "settle", "consistency" or
	// "on_partition". Or "tls.client_cn", which belongs to no rule: client certificates have to be
	// verified.
	Field string
	// Value of consistency and on_partition; the stream of defer, if requests go there; the
	// identity of tls.client_cn.
	Value string
}

// Needs returns all needs, in the order of the rules.
func (s *Set) Needs() []Need {
	var all []Need
	for _, r := range s.rules {
		if r.mode != rulefile.Disabled {
			all = append(all, r.needs()...)
		}
	}
	for _, id := range s.ids.all {
		if slices.ContainsFunc(id.sources, func(src source) bool { return src.kind == rulefile.SourceTLSClientCN }) {
			all = append(all, Need{Field: "tls.client_cn", Value: strings.TrimSpace(id.name)})
		}
	}
	return all
}

func (r *rule) needs() []Need {
	var queue, slots, settle bool
	stream := ""
	if r.deferred != nil {
		stream = r.deferred.Stream
	}
	for i := range r.branches {
		t := &r.branches[i].Terms
		queue, slots = queue || t.Queue != nil, slots || t.Concurrency != nil
		settle = settle || t.Cost != nil && t.Cost.Settle != ""
	}
	t := r.terms
	var all []Need
	for _, n := range []struct {
		field, value string
		needed       bool
	}{
		{"queue", "", queue || t.Queue != nil},
		{"defer", stream, r.deferred != nil},
		{"concurrency", "", slots || t.Concurrency != nil},
		{"count", "", r.count != nil},
		{"settle", "", settle || t.Cost != nil && t.Cost.Settle != ""},
		{"consistency", r.policies.consistency, r.policies.consistency != ""},
		{"on_partition", r.policies.onPartition, r.policies.onPartition != ""},
	} {
		if n.needed {
			all = append(all, Need{r.name, n.field, n.value})
		}
	}
	return all
}

// Handling is what a rule says about requests without room, and about how a fleet shares its
// counters. Front ends and stores act on it; a Set does not.
type Handling struct {
	Defer       *tidegate.Defer // nil means nothing is kept
	Consistency string          // strict, leased, eventual, split; "" means the store's own
	OnPartition string          // continue, share; "" means not said
}

// Handling returns the handling of the rule of that name; false means that there is no such rule.
func (s *Set) Handling(rule string) (Handling, bool) {
	r := s.find(rule)
	if r == nil {
		return Handling{}, false
	}
	h := Handling{Consistency: r.policies.consistency, OnPartition: r.policies.onPartition}
	h.Defer = r.kept()
	return h, true
}

// kept returns how refused requests of the rule are kept for later; nil means that they are not.
func (r *rule) kept() *tidegate.Defer {
	d := r.deferred
	if d == nil {
		return nil
	}
	return &tidegate.Defer{Keep: d.Keep, Places: d.Places, PerKey: d.PerKey, MaxBody: d.MaxBody, Stream: d.Stream}
}
