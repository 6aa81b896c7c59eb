package client

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

var testNow = time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)

// header makes headers of lines "Name: value".
func header(lines ...string) http.Header {
	h := make(http.Header)
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return h
}

func TestQuotas(t *testing.T) {
	f := func(want []quota, lines ...string) {
		t.Helper()
		if got := quotas(header(lines...), testNow); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, want %+v", lines, got, want)
		}
	}
	one := func(name string, limit, left int64, reset time.Duration) []quota {
		return []quota{{name: name, limit: limit, left: left, reset: reset}}
	}
	const s = time.Second
	// Draft 11.
	f(one("burst", 100, 50, 30*s), `RateLimit: "burst";r=50;t=30`, `RateLimit-Policy: "burst";q=100;w=60`)
	f(one("burst", 0, 50, 30*s), `RateLimit: "burst";r=50;t=30`)
	f(one("burst", 100, 0, -1), `RateLimit: "burst";r=0`, `RateLimit-Policy: "burst";q=100;qu="requests"`)
	f([]quota{{"slots", 5, 3, -1, "concurrent-requests"}}, `RateLimit: "slots";r=3`, `RateLimit-Policy: "slots";q=5;qu="concurrent-requests"`)
	f([]quota{{"a", 10, 1, 2 * s, ""}, {"b", 20, 3, 4 * s, ""}}, `RateLimit: "a";r=1;t=2, "b";r=3;t=4`, `RateLimit-Policy: "b";q=20;w=9`, `RateLimit-Policy: "a";q=10`)
	f([]quota{{"a", 0, 1, 2 * s, ""}, {"b", 0, 3, 4 * s, ""}}, `RateLimit: "a";r=1;t=2`, `RateLimit: "b";r=3;t=4`)
	f(one(`a", "b`, 0, 1, 2*s), `RateLimit: "a\", \"b"; r=1; t=2;pk=:c29tZWJvZHk=:`)
	f(one("default", 0, 1, maxDelay), `RateLimit: "default";r=1;t=999999999999999`)
	// One mistake makes a list invalid.
	for _, bad := range []string{`"a`, `"a";r=1,`, `"a";r=1 "b";r=2`, `"a";;r=1`, `"a\x";r=1`, `"a";=1`, ",", `"a";r=1;t="`, "\"\x80\";r=1", strings.Repeat(`"a";r=1,`, maxItems) + `"a"`, `"` + strings.Repeat("a", maxField) + `";r=1`} {
		f(nil, "RateLimit: "+bad)
	}
	// Draft 7, and draft 6.
	f(one("draft7", 100, 50, 5*s), "RateLimit: limit=100, remaining=50, reset=5")
	f(one("draft6", 100, 50, 5*s), "RateLimit-Limit: 100", "RateLimit-Remaining: 50", "RateLimit-Reset: 5", "RateLimit-Policy: 100;w=60")
	f(one("draft6", 100, 50, -1), "RateLimit-Limit: 100, 100;w=60", "RateLimit-Remaining: 50")
	f(nil, "RateLimit-Limit: 100")
	// X-RateLimit, as a delay and as a time.
	f(one("x", 100, 50, 5*s), "X-RateLimit-Limit: 100", "X-RateLimit-Remaining: 50", "X-RateLimit-Reset: 5")
	f(one("x", 100, 0, 90*s), "X-RateLimit-Limit: 100", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1794830490")
	f(one("x", 100, 0, 90500*time.Millisecond), "X-RateLimit-Limit: 100", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1794830490.5")
	f(one("x", 100, 0, 90500*time.Millisecond), "X-RateLimit-Limit: 100", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1794830490500")
	f(one("x", 0, 0, 0), "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1794830000") // over
	f(one("x-rate", 15, 14, 900*s), "X-Rate-Limit-Limit: 15", "X-Rate-Limit-Remaining: 14", "X-Rate-Limit-Reset: 1794831300")
	// The clock of the server counts, not ours.
	f(one("x", 0, 0, 90*s), "Date: Mon, 16 Nov 2026 11:00:00 GMT", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1794826890")
	// Large language models.
	f([]quota{{"x-requests", 60, 59, time.Second, ""}, {"x-tokens", 150000, 149984, 6 * time.Minute, "tokens"}},
		"X-RateLimit-Limit-Requests: 60", "X-RateLimit-Remaining-Requests: 59", "X-RateLimit-Reset-Requests: 1s",
		"X-RateLimit-Limit-Tokens: 150000", "X-RateLimit-Remaining-Tokens: 149984", "X-RateLimit-Reset-Tokens: 6m0s")
	f(one("a-requests", 50, 0, 30*s), "Anthropic-RateLimit-Requests-Limit: 50", "Anthropic-RateLimit-Requests-Remaining: 0", "Anthropic-RateLimit-Requests-Reset: 2026-11-16T12:00:30Z")
	// Garbage.
	for _, bad := range []string{"-1", "1e9", "0x10", "NaN", "Inf", "1_000", "many", ".5", "1.2.3", "99999999999999999999999999"} {
		f(nil, "X-RateLimit-Remaining: "+bad)
	}
	f(nil)
}

func TestRetryAfter(t *testing.T) {
	const none = time.Duration(-1)
	f := func(want time.Duration, lines ...string) {
		t.Helper()
		got, ok := retryAfter(header(lines...), testNow)
		if !ok {
			got = none
		}
		if got != want {
			t.Errorf("%q: %s, want %s", lines, got, want)
		}
	}
	const s = time.Second
	f(30*s, "Retry-After: 30")
	f(1500*time.Millisecond, "Retry-After: 1.5")
	f(90*s, "Retry-After: Mon, 16 Nov 2026 12:01:30 GMT")
	f(90*s, "Retry-After: Monday, 16-Nov-26 12:01:30 GMT")
	f(30*s, "Retry-After: Mon, 16 Nov 2026 12:01:30 GMT", "Date: Mon, 16 Nov 2026 12:01:00 GMT")
	f(0, "Retry-After: Mon, 16 Nov 2026 11:01:30 GMT") // over
	f(0, "Retry-After: 0")
	f(none, "Retry-After: -5")
	f(none, "Retry-After: soon")
	f(none, "Retry-After: ")
	for _, digits := range []int{9, 10, 12, 13, 17, 20, 21, 65, 400, 10_000} {
		f(maxDelay, "Retry-After: "+strings.Repeat("9", digits))
	}
	f(5*s, "Retry-After: "+strings.Repeat("0", 30)+"5")
	f(90*s, "Retry-After: 1794830490") // a moment, as some write it
	f(0, "Retry-After: 1794830000")
	// Several: the longest that can be read.
	f(60*s, "Retry-After: 1", "Retry-After: 60")
	f(60*s, "Retry-After: 60", "Retry-After: 1")
	f(90*s, "Retry-After: soon", "Retry-After: Mon, 16 Nov 2026 12:01:30 GMT", "Retry-After: 30")
	f(60*s, "Retry-After: 1, 60")
	f(7*s, "Retry-After: soon, 7")
	f(90*s, "Retry-After: Mon, 16 Nov 2026 12:01:30 GMT, 30")
	f(90*s, "Retry-After: 30, Mon, 16 Nov 2026 12:01:30 GMT")
	f(100*s, "Retry-After: Mon, 16 Nov 2026 12:01:30 GMT, Monday, 16-Nov-26 12:01:40 GMT")
	f(100*s, "Retry-After: Mon, 16 Nov 2026 12:01:30 GMT,soon, 100")
	f(none, "Retry-After: "+strings.Repeat("soon,", 1<<20)+"7")
	f(250*time.Millisecond, "Retry-After-Ms: 250", "Retry-After: 1")
	f(250*time.Millisecond, "X-Ms-Retry-After-Ms: 250")
	f(7*s, "X-RateLimit-Retry-After: 7")
	f(none)
}

func TestRefusals(t *testing.T) {
	f := func(status int, want *refusal, lines ...string) {
		t.Helper()
		res := &http.Response{StatusCode: status, Header: header(lines...)}
		r, ok := refusalOf(res, quotas(res.Header, testNow), testNow)
		if ok != (want != nil) || ok && r != *want {
			t.Errorf("%d %q: %+v, %v, want %+v", status, lines, r, ok, want)
		}
	}
	const s = time.Second
	f(200, nil)
	f(200, nil, "Retry-After: 3")
	f(429, &refusal{})
	f(429, &refusal{named: true, after: 3 * s}, "Retry-After: 3")
	f(429, &refusal{named: true, after: 3 * s, final: true}, "Retry-After: 3", "X-Should-Retry: false")
	f(429, &refusal{named: true, after: 9 * s}, `RateLimit: "a";r=0;t=5, "b";r=0;t=9, "c";r=7;t=60`)
	f(429, &refusal{named: true, after: 3 * s}, "Retry-After: 3", `RateLimit: "a";r=0;t=5`)
	f(429, &refusal{final: true}, `RateLimit: "a";r=3;t=5`, `RateLimit-Policy: "a";q=3;w=5`) // the request costs more than 3
	f(429, &refusal{}, "X-RateLimit-Remaining-Tokens: 3", "X-RateLimit-Reset-Tokens: 1s")    // it needs more tokens
	f(429, &refusal{}, "Retry-After: 0", "X-RateLimit-Remaining: 5", "X-RateLimit-Reset: 5") // now, so not never
	f(503, nil)
	f(503, &refusal{}, "Retry-After: 0")
	f(503, &refusal{named: true, after: 3 * s}, "Retry-After: 3")
	f(503, &refusal{named: true, after: 3 * s, final: true}, "Retry-After: 3", "X-Should-Retry: False")
	f(402, nil, "Retry-After: 3")
	f(403, nil, "Retry-After: 3")
	f(500, nil)
	f(500, &refusal{}, "X-Should-Retry: true")
	f(408, &refusal{})
	f(425, &refusal{})
	f(425, &refusal{named: true, after: 3 * s, final: true}, "Retry-After: 3", "X-Should-Retry: false")
	f(301, nil, "Retry-After: 3")
	f(409, &refusal{named: true, after: 3 * s}, "X-Should-Retry: true", "Retry-After: 3")
}
