package lint_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

func TestConsistencyNeeds(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		finds(t, "consistency-needs", src, want...)
	}
	f(`
rules:
  - { name: a, per: everyone, limits: 1000/minute, consistency: leased }
`, "warning 1000/minute")
	f(`
rules:
  - { name: a, per: everyone, limits: { rate: 1000/second, burst: 3, algorithm: token_bucket }, consistency: leased }
`, "warning 1000/second")
	f(`
instances: 5
rules:
  - { name: a, per: ip, limits: { rate: 19/hour, algorithm: fixed_window }, consistency: leased }
  - { name: b, per: everyone, limits: { rate: 1000/second, burst: 20, algorithm: token_bucket }, consistency: leased }
  - { name: c, per: ip, quota: 1000/day, consistency: leased }
`, "warning 19/hour", "warning 1000/second", "warning 1000/day")
	f(`
rules:
  - { name: a, per: ip, limits: { rate: 10/minute, algorithm: token_bucket }, consistency: eventual }
`, "error 10/minute")
	f(`
instances: 5
rules:
  - { name: a, per: ip, limits: 4/minute, consistency: eventual }
  - { name: b, per: ip, quota: 4/day, consistency: eventual }
  - { name: c, per: ip, limits: 5/minute, block: 1m, consistency: eventual }
`, "warning 4/minute", "warning 4/day", "warning 1m")
	f(`
rules:
  - { name: a, per: ip, concurrency: { slots: 5, lease: 30s }, consistency: eventual }
`, "error concurrency")
	// One word suffices.
	f(`
instances: 5
rules:
  - { name: a, per: everyone, limits: 1000/second, consistency: leased }
  - { name: b, per: everyone, limits: { rate: 1000/second, burst: 40 }, consistency: leased }
  - { name: c, per: ip, limits: 5/second, quota: 1000/day, consistency: split }
  - { name: d, per: ip, limits: 10/minute, consistency: eventual }
  - { name: g, per: ip, limits: { rate: 10/minute, algorithm: sliding_window }, quota: 1000/day, consistency: eventual }
  - { name: e, per: ip, limits: 10/minute, consistency: strict }
  - { name: f, per: ip, limits: 10/minute }
`)
	// A block is looked up in the shared store; a split limit of three has none for two of five.
	f(`
instances: 5
rules:
  - { name: a, per: ip, limits: 3/second, consistency: split }
  - { name: b, per: ip, limits: 7/second, block: 1m, consistency: split }
  - { name: c, per: ip, limits: 1/840h, consistency: split }
  - { name: d, per: ip, quota: 4/day, consistency: split }
`, "warning 3/second", "warning 1m", "warning 1/840h", "warning 4/day")
}

// Whatever was written out and cannot be shared is an error, in every place where it can be
// written. What the file says for all rules holds where it can.
func TestConsistencyUnfit(t *testing.T) {
	const every = "identify: { plan: jwt.plan }\n"
	for _, mode := range []string{"leased", "split", "{ mode: leased, deny_cache: false }", "{ mode: split }"} {
		for terms, want := range map[string]string{
			"limits: { rate: 1000/second, algorithm: token_bucket }":                                               "",
			"limits: { rate: 1000/second, algorithm: fixed_window }":                                               "",
			"limits: { rate: 1000/second, algorithm: sliding_log }":                                                "error 1000/second",
			"limits: { rate: 1000/second, algorithm: sliding_log, count_rejected: true }":                          "error 1000/second",
			"limits: { rate: 1000/second, algorithm: sliding_window }":                                             "error 1000/second",
			"limits: { rate: 1000/second, algorithm: sub_windows }":                                                "error 1000/second",
			"limits: { rate: 1000/second, parts: 10 }":                                                             "error 1000/second",
			"limits: { rate: 1000/second, ceiling: true }":                                                         "error 1000/second",
			"limits: { from: jwt.rps, per: second, max: 9, else: 3, algorithm: sub_windows }":                      "error jwt.rps",
			"limits: 1000/second, candidate: { rate: 900/second, algorithm: sliding_window }":                      "error 900/second",
			"limits: 1000/second, concurrency: { slots: 5, lease: 30s }":                                           "error concurrency",
			"limits: 1000/second, queue: { places: 5, max_wait: 1s }":                                              "error queue",
			"limits: { rate: 900/second, algorithm: leaky_bucket }, queue: { places: 5, max_wait: 1s }":            "error 900/second, error queue",
			"limits: 1000/second, for: [{ when: { plan: a }, queue: { places: 5, max_wait: 1s } }]":                "error queue",
			"limits: 1000/second, for: [{ when: { plan: a }, limits: { rate: 900/second, parts: 9 } }]":            "error 900/second",
			"limits: { by: plan, rows: { a: { rate: 900/second, algorithm: sub_windows } }, else: 99/s }":          "error 900/second",
			"limits: 1000/second, mode: shadow, concurrency: { slots: 5, lease: 30s }":                             "error concurrency",
			"limits: { rate: 1000/second, algorithm: sliding_window }, mode: disabled":                             "",
			"limits: 1000/second, over: { soft: 10% }, candidate: 900/second, cost: { reserve: query.n, else: 1 }": "",
		} {
			terms = strings.Replace(terms, "query.n", "query n", 1)
			src := "version: 1\n" + every + "rules: [{ name: a, per: ip, " + terms + ", consistency: " + mode + " }]"
			var got []string
			for _, p := range run(t, "consistency-needs", "rules.yaml", src) {
				got = append(got, p.Severity.String()+" "+underlined(p))
			}
			if strings.Join(got, ", ") != want {
				t.Errorf("%s: finds %q, want %q", src, got, want)
			}
			src = "version: 1\n" + every + "defaults: { consistency: " + mode + " }\nrules: [{ name: a, per: ip, " + terms + " }]"
			if found := run(t, "consistency-needs", "rules.yaml", src); len(found) > 0 {
				t.Errorf("%s: finds\n%v", src, found)
			}
		}
	}
}

// Whoever does what a warning about a limit that is too small says has none: at the latest when
// the second hint was followed, the rate and then the burst for it.
func TestConsistencyHintsHelp(t *testing.T) {
	type numbers struct {
		events, burst int64
		per           string
	}
	hints := map[*regexp.Regexp]func(n *numbers, said string){
		regexp.MustCompile(`burst of (\d+)`):             func(n *numbers, said string) { _, _ = fmt.Sscan(said, &n.burst) },
		regexp.MustCompile(`rate to (\d+) a second`):     func(n *numbers, said string) { _, _ = fmt.Sscan(said, &n.events) },
		regexp.MustCompile(`limit (?:to|of) (\d+)`):      func(n *numbers, said string) { _, _ = fmt.Sscan(said, &n.events) },
		regexp.MustCompile(`the period (\S+) or longer`): func(n *numbers, said string) { n.per = said },
	}
	told := 0
	follow := func(mode string, instances int, n numbers, text func(numbers) string) {
		t.Helper()
		var said []string
		for range 3 {
			src := fmt.Sprintf("version: 1\ninstances: %d\nrules: [{ name: a, per: everyone, %s, consistency: %s }]", instances, text(n), mode)
			found := run(t, "consistency-needs", "rules.yaml", src)
			if len(found) == 0 {
				return
			}
			told++
			if strings.HasPrefix(found[0].Hint, "remove") { // nothing else would help
				return
			}
			said = append(said, found[0].Message+": "+found[0].Hint)
			for hint, do := range hints {
				if m := hint.FindStringSubmatch(found[0].Hint); m != nil {
					do(&n, m[1])
				}
			}
		}
		t.Errorf("%s, %d instances: told\n%s", mode, instances, strings.Join(said, "\n"))
	}
	for _, mode := range []string{"leased", "split"} {
		for _, instances := range []int{1, 2, 5, 20, 100, 1000} {
			for _, events := range []int64{1, 3, 20, 100, 999, 20_000} {
				for _, burst := range []int64{1, 7, 100, 5000, 1_000_000} {
					follow(mode, instances, numbers{events, burst, "second"}, func(n numbers) string {
						return fmt.Sprintf("limits: { rate: %d/%s, burst: %d }", n.events, n.per, n.burst)
					})
				}
				for _, per := range []string{"25ms", "40ms", "70ms", "199ms", "second", "minute"} {
					follow(mode, instances, numbers{events, 0, per}, func(n numbers) string {
						return fmt.Sprintf("limits: { rate: %d/%s, algorithm: fixed_window }", n.events, n.per)
					})
				}
				follow(mode, instances, numbers{events, 0, "day"}, func(n numbers) string { return fmt.Sprintf("quota: %d/%s", n.events, n.per) })
			}
		}
	}
	if told < 500 {
		t.Errorf("only %d warnings: the test has lost its point", told)
	}
}
