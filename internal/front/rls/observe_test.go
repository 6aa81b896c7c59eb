package rls

import (
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/rules/envoy"
)

// A rule in shadow mode whose client left before the store was asked has no decision to count.
func TestShadowedNeedsADecision(t *testing.T) {
	limit := tidegate.PerMinute(5)
	var counted []*tidegate.Limit
	s := &Server{o: Options{Shadowed: func(l *tidegate.Limit, _ bool) { counted = append(counted, l) }}}
	shadow := &envoy.Rule{Shadow: true}
	s.observe(&call{descriptors: []descriptor{
		{rule: shadow, asked: true, decision: tidegate.Decision{OK: true}},
		{rule: shadow, asked: true, decision: tidegate.Decision{OK: true, Limit: limit}},
	}})
	if len(counted) != 1 || counted[0] != limit {
		t.Errorf("counted %v, want the one that was decided", counted)
	}
}
