package rules

import (
	"fmt"
	"strings"
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

// What it takes to read and compile a rule, of a file with a thousand.
func BenchmarkParse(b *testing.B) {
	var src strings.Builder
	src.WriteString("version: 1\nidentify:\n  user: header X-User\n  plan: header X-Plan\nrules:\n")
	const rules = 1000
	for i := range rules {
		switch i % 3 {
		case 0:
			fmt.Fprintf(&src, "  - { name: write-%d, match: \"PUT /api/things%d/{id}\", per: user, limits: 5/second }\n", i, i)
		case 1:
			fmt.Fprintf(&src, "  - { name: read-%d, match: GET /api/lists%d, when: { plan: free }, per: ip, limits: 60/minute }\n", i, i)
		default:
			fmt.Fprintf(&src, "  - { name: page-%d, match: /pages/section%d/, per: ip, limits: 300/minute }\n", i, i)
		}
	}
	text := []byte(src.String())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse("bench.yaml", text, Config{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rules, "ns/rule")
}
