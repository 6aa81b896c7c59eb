package rules

import (
	"fmt"
	"testing"

	"tidegate.dev/tidegate"
)

// What a request costs that three rules of a small file hold for. For many rules
// see bench/rules.
func BenchmarkMatch(b *testing.B) {
	set := parse(b, allocRules, Config{})
	benchmarkMatch(b, set)
}

// The same where rules can be exchanged, and where nobody, somebody else, or whoever asks has
// measures, of 10,000.
func BenchmarkMatchLive(b *testing.B) {
	live := NewLive(parse(b, allocRules, Config{}))
	b.Run("none", func(b *testing.B) { benchmarkMatch(b, live) })
	all := make([]Measure, 10_000)
	for i := range all {
		if i%2 == 0 {
			all[i] = ban(fmt.Sprintf("m-%d", i), fmt.Sprintf("user=u%d", i), "")
		} else {
			all[i] = override(fmt.Sprintf("m-%d", i), fmt.Sprintf("user=u%d", i), "api", fmt.Sprintf("%d/minute", i))
		}
	}
	live.SetMeasures(all)
	b.Run("others", func(b *testing.B) { benchmarkMatch(b, live) })
	all[1].As["user"] = "user-123456789"
	live.SetMeasures(all)
	b.Run("override", func(b *testing.B) { benchmarkMatch(b, live) })
	all[0].As["user"] = "user-123456789"
	live.SetMeasures(all)
	b.Run("ban", func(b *testing.B) { benchmarkMatch(b, live) })
}

func benchmarkMatch(b *testing.B, m tidegate.Matcher) {
	b.ReportAllocs()
	r := new(tidegate.Request)
	v := few{}
	dst := make([]tidegate.Check, 0, 16)
	for b.Loop() {
		r.Reset()
		r.Method, r.Host, r.Path, r.Values = "POST", "shop.example.com", "/api/orders/4711", v
		dst = m.Match(r, dst[:0])
	}
}
