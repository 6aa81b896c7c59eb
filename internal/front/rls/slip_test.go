package rls_test

import (
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/internal/front/rls"
)

const slipConfig = `domain: d
descriptors:
  - { key: hour, rate_limit: { unit: hour, requests_per_unit: 1 } }
  - { key: day, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: never, rate_limit: { unit: hour, requests_per_unit: 0 } }
  - { key: many, rate_limit: { unit: hour, requests_per_unit: 1000 } }
  - { key: quota, rate_limit: { unit: year, requests_per_unit: 1 }, quota_mode: true }
  - { key: tried, rate_limit: { unit: hour, requests_per_unit: 0 }, shadow_mode: true }
`

// slipOfCall asks, and returns the slip that Envoy is told to add.
func (s *service) slipOfCall(descriptors ...string) string {
	s.Helper()
	for _, h := range s.ask(request("d", descriptors...)).ResponseHeadersToAdd {
		if h.Key == httplimit.SlipHeader {
			return h.Value
		}
	}
	return ""
}

func ruleOfSlip(checks []tidegate.Check, d *tidegate.Decision) string {
	if len(checks) != 1 || checks[0].Limit != d.Limit || checks[0].Key == "" {
		return "wrong checks"
	}
	return d.Limit.Terms.Rule
}

// A call that is refused has the slip of the descriptor that refuses it, beside other headers. Others
// have none.
func TestSlipOfACall(t *testing.T) {
	o := inMemory(t, slipConfig)
	o.Slip, o.Headers = ruleOfSlip, rls.Headers{Limit: "L", Remaining: "R", Reset: "S"}
	s := serve(t, o)
	f := func(want string, descriptors ...string) {
		t.Helper()
		if got := s.slipOfCall(descriptors...); got != want {
			t.Errorf("%q: the slip is %q, want %q", descriptors, got, want)
		}
	}
	f("", "hour=a", "day=a", "quota=a", "many=a")
	f("d.hour", "hour=a")
	f("d.day", "hour=a", "day=a", "many=a") // which has to wait longer
	f("d.never", "never=a", "hour=a")       // which never passes
	f("d.hour", "quota=a", "hour=a")        // a quota alone would not refuse
	f("", "quota=a", "quota=b")             // not all quotas are used up
	f("d.quota", "quota=a", "quota=b")      // they are
	f("", "tried=a", "many=a", "unknown=a") // only counted
	f("d.never", "tried=a", "never=a")      // the other one refuses
	o.Shadow = true
	s = serve(t, o)
	f("", "never=a")
	o.Shadow, o.Slip = false, nil
	s = serve(t, o)
	f("", "never=a")
}
