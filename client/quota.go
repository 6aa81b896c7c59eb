package client

import (
	"net/http"
	"strings"
	"time"
)

// quota is what a response says about one limit.
type quota struct {
	name  string
	limit int64         // 0 means unknown
	left  int64         // -1 means unknown
	reset time.Duration // until there is more; -1 means unknown
	unit  string        // what is counted; "" means requests
}

// dialect is three headers that describe one limit.
type dialect struct{ name, limit, left, reset, unit string }

// dialects are those of draft 6, of common practice, and of the large language models.
var dialects = []dialect{
	{"draft6", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", ""},
	{"x", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", ""},
	{"x-rate", "X-Rate-Limit-Limit", "X-Rate-Limit-Remaining", "X-Rate-Limit-Reset", ""},
	{"x-requests", "X-RateLimit-Limit-Requests", "X-RateLimit-Remaining-Requests", "X-RateLimit-Reset-Requests", ""},
	{"x-tokens", "X-RateLimit-Limit-Tokens", "X-RateLimit-Remaining-Tokens", "X-RateLimit-Reset-Tokens", "tokens"},
	{"a-requests", "Anthropic-RateLimit-Requests-Limit", "Anthropic-RateLimit-Requests-Remaining", "Anthropic-RateLimit-Requests-Reset", ""},
	{"a-tokens", "Anthropic-RateLimit-Tokens-Limit", "Anthropic-RateLimit-Tokens-Remaining", "Anthropic-RateLimit-Tokens-Reset", "tokens"},
}

// quotas returns what the headers of a response say about limits, in all dialects that it uses. A
// field that cannot be parsed is ignored.
func quotas(h http.Header, now time.Time) []quota {
	now = serverTime(h, now)
	all := structuredQuotas(h)
	for _, d := range dialects {
		q := quota{name: d.name, unit: d.unit, left: -1, reset: -1}
		var ok bool
		if q.left, ok = parseCount(h.Get(d.left)); !ok {
			continue
		}
		q.limit, _ = parseCount(firstItem(h.Get(d.limit)))
		if q.reset, ok = parseReset(h.Get(d.reset), now); !ok {
			q.reset = -1
		}
		all = append(all, q)
	}
	return all
}

// firstItem returns "100" of "100, 100;w=60", a form from before draft 6.
func firstItem(s string) string {
	s, _, _ = strings.Cut(s, ",")
	s, _, _ = strings.Cut(s, ";")
	return s
}

// retryAfter returns how long a response asks to wait, and whether it says so.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	for _, name := range [...]string{"Retry-After-Ms", "X-Ms-Retry-After-Ms"} { // more exact
		if d, ok := parseNumber(h.Get(name), time.Millisecond); ok {
			return d, true
		}
	}
	for _, name := range [...]string{"Retry-After", "X-Ratelimit-Retry-After"} {
		var longest time.Duration
		told := false
		for _, line := range h[name] { // each server on the way may add one
			if d, ok := parseRetryAfter(line, serverTime(h, now)); ok {
				longest, told = max(longest, d), true
			}
		}
		if told {
			return longest, true
		}
	}
	return 0, false
}

// renewBy caps the reset of all quotas at after, the Retry-After: the drafts give it precedence.
func renewBy(all []quota, after time.Duration) {
	for i := range all {
		all[i].reset = min(all[i].reset, after)
	}
}

// resetOf returns when the last of the used-up quotas is renewed; 0 means that none is used up, or
// that the time is unknown.
func resetOf(all []quota) (longest time.Duration) {
	for _, q := range all {
		if q.left == 0 {
			longest = max(longest, q.reset)
		}
	}
	return longest
}
