package client

import (
	"net/http"
	"strings"
	"testing"
)

// Whatever a server sends, what is read from it is in bounds.
func FuzzHeaders(f *testing.F) {
	for _, seed := range []string{
		`RateLimit: "burst";r=50;t=30` + "\n" + `RateLimit-Policy: "burst";q=100;w=60`,
		"RateLimit: limit=100, remaining=50, reset=5",
		"RateLimit-Limit: 100, 100;w=60\nRateLimit-Remaining: 0\nRateLimit-Reset: 1794830490.5",
		"X-RateLimit-Limit: 1\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 99999999999999999999",
		"Retry-After: Mon, 16 Nov 2026 12:01:30 GMT\nDate: Mon, 16 Nov 2026 12:01:00 GMT",
		"Retry-After-Ms: 250",
		"X-RateLimit-Remaining-Tokens: 3\nX-RateLimit-Reset-Tokens: -1h",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h := make(http.Header)
		for line := range strings.SplitSeq(text, "\n") {
			name, value, _ := strings.Cut(line, ": ")
			h.Add(name, value)
		}
		all := quotas(h, testNow)
		if len(all) > maxItems+len(dialects) {
			t.Errorf("%d quotas", len(all))
		}
		for _, q := range all {
			if q.left < -1 || q.limit < 0 || q.reset < -1 || q.reset > maxDelay {
				t.Errorf("%+v", q)
			}
		}
		if d, _ := retryAfter(h, testNow); d < 0 || d > maxDelay {
			t.Errorf("retry after %s", d)
		}
		var p pacer
		p.learn(all, testNow, 1)
		if wait := p.turn(testNow, maxDelay); wait < 0 || wait > maxDelay {
			t.Errorf("waits %s", wait)
		}
	})
}

// A name in quotes is read as it was written.
func FuzzListNames(f *testing.F) {
	f.Add("burst", "day")
	f.Add(`a\b`, `"`)
	f.Fuzz(func(t *testing.T, a, b string) {
		quote := func(s string) string {
			return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
		}
		text := quote(a) + ";r=1, " + quote(b) + ";r=2"
		items, ok := parseList(text)
		if printable := strings.IndexFunc(a+b, func(r rune) bool { return r < 0x20 || r > 0x7e }) < 0; !printable || len(text) > maxField {
			if ok {
				t.Errorf("%q is valid", text)
			}
			return
		}
		if !ok || len(items) != 2 || items[0].name != a || items[1].name != b || items[0].param("r") != "1" || items[1].param("r") != "2" {
			t.Errorf("%q: %+v, %v", text, items, ok)
		}
	})
}
