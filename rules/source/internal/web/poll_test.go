package web

import (
	"net/http"
	"testing"
	"time"
)

func TestMaxAge(t *testing.T) {
	f := func(want time.Duration, lines ...string) {
		t.Helper()
		if got := MaxAge(http.Header{"Cache-Control": lines}); got != want {
			t.Errorf("%q: %s, want %s", lines, got, want)
		}
	}
	f(0)
	f(0, "")
	f(5*time.Second, "max-age=5")
	f(5*time.Second, `public, Max-Age="5", must-revalidate`)
	f(MaxPause, "max-age=61")
	f(MaxPause, "max-age=2147483647")
	f(0, "max-age=99999999999999999999")
	f(0, "max-age=-1")
	f(0, "max-age=5, no-cache")
	f(0, "no-store", "max-age=5")
	f(0, "s-maxage=5")
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f := func(text string, want time.Duration) {
		t.Helper()
		if got := RetryAfter(http.Header{"Retry-After": {text}}, now); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	f("", 0)
	f("0", 0)
	f("7", 7*time.Second)
	f("-7", 0)
	f("soon", 0)
	f("86400", MaxRetryAfter)
	f(now.Add(30*time.Second).Format(http.TimeFormat), 30*time.Second)
	f(now.Add(-time.Hour).Format(http.TimeFormat), 0)
	f(now.Add(1000*time.Hour).Format(http.TimeFormat), MaxRetryAfter)
}

func TestSeconds(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "1", time.Millisecond: "1", time.Second: "1", 1001 * time.Millisecond: "2", time.Minute: "60"} {
		if got := Seconds(d); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}
