package ruletest

import (
	"fmt"
	"strings"
	"testing"
)

// Whatever does not divide its period: after exactly one, all its events are back, and
// not one more.
func TestWholePeriodsComeOutWhole(t *testing.T) {
	for _, unit := range []string{"second", "minute", "hour"} {
		for _, events := range []int{1, 2, 3, 7, 9, 11, 13, 60, 97, 333, 999} {
			rule := fmt.Sprintf("version: 1\nrules: [{ name: api, per: everyone, limits: { rate: %d/%s, burst: %d, algorithm: token_bucket } }]\n", events, unit, events)
			want := strings.Repeat("ok, ", events) + "refused"
			var steps strings.Builder
			for period := range 4 {
				at := map[string]string{"second": "s", "minute": "m", "hour": "h"}[unit]
				fmt.Fprintf(&steps, "      - { at: %d%s, request: GET /, times: %d, want: [%s] }\n", period, at, events+1, want)
			}
			if r := run(t, rule, steps.String()); r.Failed() != 0 {
				t.Errorf("%d/%s: %s %q", events, unit, r.Cases[0].Failures[0].Message, r.Cases[0].Failures[0].Why)
			}
		}
	}
}
