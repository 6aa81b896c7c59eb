package rules

import (
	"testing"

	"tidegate.dev/tidegate"
)

// What a request costs that three rules of a small file hold for. For many rules
// see bench/rules.
func BenchmarkMatch(b *testing.B) {
	set := parse(b, allocRules, Config{})
	r := new(tidegate.Request)
	v := few{}
	dst := make([]tidegate.Check, 0, 16)
	for b.Loop() {
		r.Reset()
		r.Method, r.Host, r.Path, r.Values = "POST", "shop.example.com", "/api/orders/4711", v
		dst = set.Match(r, dst[:0])
	}
}
