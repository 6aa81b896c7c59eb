package httplimit

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

func TestPrefersText(t *testing.T) {
	f := func(want bool, accept ...string) {
		t.Helper()
		if got := prefersText(accept); got != want {
			t.Errorf("Accept %q: text %v, want %v", accept, got, want)
		}
	}
	f(false)
	f(false, "")
	f(false, "*/*")
	f(false, "application/json")
	f(false, "application/problem+json")
	f(false, "application/json, text/plain, */*")
	f(false, "text/plain;q=0.5, application/json")
	f(false, "image/png")
	f(false, "text/html;q=0, */*")
	f(true, "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
	f(true, "text/plain")
	f(true, "Text/HTML")
	f(true, "text/*")
	f(true, "application/json;q=0.1", "text/plain;q=0.2")
	f(true, "*/*, application/*;q=0.1")
	f(false, "text/plain;q=nonsense, application/json;q=0.1")
	f(false, "text/plain;q=NaN, application/json;q=0.1")
	f(false, ";;;,,,q=")
}

func TestTextForThoseWhoRead(t *testing.T) {
	w := get(refusing(Options{}, "burst", tidegate.Decision{RetryAfter: 2 * time.Second}), func(r *http.Request) {
		r.Header.Set("Accept", "text/html, */*;q=0.8")
	})
	if got := w.Header().Get("Content-Type"); !strings.HasPrefix(got, "text/plain") {
		t.Errorf("Content-Type: %s", got)
	}
	if got := w.Body.String(); got != "The quota of the policy burst is used up; try again in 2 s.\n" {
		t.Errorf("body %q", got)
	}
}
