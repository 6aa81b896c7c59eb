package envoy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// limited returns the rule of a descriptor with the fields of one rate_limit.
func limited(t *testing.T, fields string) (*Rule, error) {
	t.Helper()
	set, err := Load([]File{{"config.yaml", []byte("domain: d\ndescriptors:\n  - key: user\n    rate_limit: { " + fields + " }\n")}}, Options{})
	return set.Domain("d").Find([]Entry{{"user", "ann"}}), err
}

func TestOwnKeys(t *testing.T) {
	f := func(fields string, want ...string) *Rule {
		t.Helper()
		r, err := limited(t, fields)
		if err != nil {
			t.Errorf("%s: %v", fields, err)
			return new(Rule)
		}
		var got []string
		for _, l := range r.Limits {
			n, u := r.Told(l)
			text := strings.TrimPrefix(l.String(), l.Name+": ") + fmt.Sprintf(", told %d/%v", n, u)
			if c := l.Terms.Handling.Consistency; c != tidegate.Strict {
				text += ", " + c.String()
			}
			got = append(got, text)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s:\ngot  %q\nwant %q", fields, got, want)
		}
		return r
	}
	const unit = "unit: minute, requests_per_unit: 100"
	f(unit, "100/1m0s fixed_window, told 100/minute")
	for _, a := range []string{"fixed_window", "sliding_log", "sliding_window", "sub_windows"} {
		r := f(unit+", tidegate: { algorithm: "+a+" }", "100/1m0s "+a+", told 100/minute")
		if r.CountRejected != (a == "fixed_window") {
			t.Errorf("%s counts what it refuses: %v", a, r.CountRejected)
		}
	}
	f(unit+", tidegate: { algorithm: token_bucket }", "100/1m0s token_bucket burst 100, told 100/minute")
	f(unit+", tidegate: { algorithm: token_bucket, burst: 20, consistency: leased }", "100/1m0s token_bucket burst 20, told 100/minute, leased")
	f(unit+", tidegate: { consistency: split }", "100/1m0s fixed_window, told 100/minute, split")
	f(unit+", tidegate: { limits: 1000/hour }", "100/1m0s fixed_window, told 100/minute", "1000/1h0m0s fixed_window, told 1000/hour")
	f("tidegate: { limits: [5/90s, 100/hour] }", "5/1m30s fixed_window, told 5/unknown", "100/1h0m0s fixed_window, told 100/hour")
	f("tidegate: { algorithm: sliding_log, limits: [5/second, { rate: 100/hour, algorithm: token_bucket, burst: 7 }] }",
		"5/1s sliding_log, told 5/second", "100/1h0m0s token_bucket burst 7, told 100/hour")
	f("unit: month, requests_per_unit: 0, tidegate: { algorithm: token_bucket }", "deny, told 0/month")
	if r := f(unit+", tidegate: { count_rejected: false }", "100/1m0s fixed_window, told 100/minute"); r.CountRejected {
		t.Error("count_rejected: false counts")
	}
	if r := f(unit+", tidegate: { algorithm: sliding_log, count_rejected: true }", "100/1m0s sliding_log, told 100/minute"); r.CountRejected || !r.Limits[0].CountRejected {
		t.Error("a sliding log that counts what it refuses does not do so itself")
	}
	if r := f(unit+", tidegate: { settle: true }", "100/1m0s fixed_window, told 100/minute"); !r.Settle {
		t.Error("settle is not said")
	}
	if r := f("tidegate: { limits: [5/second, 100/minute] }", "5/1s fixed_window, told 5/second", "100/1m0s fixed_window, told 100/minute"); r.RequestsPerUnit != 5 || r.Unit != Second {
		t.Errorf("told %d/%v", r.RequestsPerUnit, r.Unit)
	}
	// Counters of several limits are apart.
	r := f("tidegate: { limits: [5/second, 100/minute] }", "5/1s fixed_window, told 5/second", "100/1m0s fixed_window, told 100/minute")
	if r.Limits[0].Identity() == r.Limits[1].Identity() {
		t.Error("two limits have one counter")
	}
	if !parse(t, "domain: d\ntidegate: { atomic: true }\n").Domain("d").Atomic() || parse(t, "domain: d\n").Domain("d").Atomic() {
		t.Error("atomic is not said")
	}
}

// What cannot be counted is refused with its place, not when the first request comes.
func TestOwnKeysThatCannotBe(t *testing.T) {
	f := func(fields, want string) {
		t.Helper()
		_, err := limited(t, fields)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "config.yaml:4:") || !strings.Contains(err.Error(), "^") {
			t.Errorf("%s: got %v, want %q", fields, err, want)
		}
	}
	f("unit: year, requests_per_unit: 1, tidegate: { algorithm: token_bucket }", "slower than one in")
	f("unit: minute, requests_per_unit: 20000, tidegate: { algorithm: sliding_log }", "a sliding log keeps at most")
	f("unit: second, requests_per_unit: 4294967295, tidegate: { algorithm: token_bucket }", "at most")
	f("unit: minute, requests_per_unit: 5, tidegate: { limits: 6/minute }", "counted together")
	f("unit: minute, requests_per_unit: 5, tidegate: { limits: { rate: 6/hour, algorithm: leaky_bucket } }", "makes requests wait")
	f("unit: minute, requests_per_unit: 5, tidegate: { consistency: leased, limits: { rate: 6/hour, algorithm: sliding_log } }", "sliding_log cannot be leased")
	f("unit: minute, requests_per_unit: 5, tidegate: { limits: { from: jwt.rpm, per: minute, max: 5, else: 1 } }", "does not come from a request")
	f("tidegate: { limits: [5/minute, 6/hour], count_rejected: true }", "charged to none")
	f("tidegate: { limits: unlimited }", "not a limit")
	f("tidegate: { algorithm: token_bucket }", "has no unit")
	f("requests_per_unit: 7, tidegate: { limits: 5/minute }", "means nothing without `unit`")
}

func TestUnits(t *testing.T) {
	for u := range 256 {
		u := Unit(u)
		if known := u >= Second && u <= Week; (u.Period() > 0) != known || known && (unitNamed(u.String()) != u || unitOf(u.Period()) != u) {
			t.Errorf("%d: %v, %v", u, u, u.Period())
		}
	}
	if Month.Period() != 720*time.Hour || Year.Period() != 8760*time.Hour {
		t.Errorf("a month is %v, a year %v", Month.Period(), Year.Period())
	}
}

// While the store does not answer, instances go on counting by themselves, whatever the rule.
func TestRulesGoOnWithoutTheStore(t *testing.T) {
	set, err := Load([]File{{Name: "own.yaml", Text: []byte(`
domain: d
descriptors:
  - { key: plain, rate_limit: { unit: hour, requests_per_unit: 5 } }
  - { key: bucket, rate_limit: { unit: hour, requests_per_unit: 5, tidegate: { algorithm: token_bucket } } }
  - { key: leased, rate_limit: { unit: hour, requests_per_unit: 5, tidegate: { algorithm: token_bucket, consistency: leased } } }
  - { key: several, rate_limit: { tidegate: { limits: [5/minute, 10/hour] } } }
  - { key: tried, shadow_mode: true, rate_limit: { unit: hour, requests_per_unit: 5 } }
  - { key: quota, quota_mode: true, rate_limit: { unit: hour, requests_per_unit: 5 } }
`)}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := set.Domain("d")
	all := d.Rules()
	for unit := Second; unit <= Week; unit++ {
		r, err := d.Override(5, unit)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	for _, r := range all {
		for _, l := range r.Limits {
			if got := l.Terms.Handling.OnStoreFailure; got != tidegate.FailLocal {
				t.Errorf("%s: %s fails by mode %d", r.Path, l.Name, got)
			}
		}
	}
}
