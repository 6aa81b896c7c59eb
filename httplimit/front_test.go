package httplimit

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// A refusal tells front ends of other protocols what the middleware tells clients of HTTP.
func TestRefusalOfAFront(t *testing.T) {
	window := tidegate.MustLimit(tidegate.Spec{Name: "window", Events: 5, Period: time.Minute, Algorithm: tidegate.FixedWindow})
	slots := tidegate.MustLimit(tidegate.Spec{Name: "slots", Events: 5, Period: time.Minute, Algorithm: tidegate.Concurrency})
	deny := tidegate.MustLimit(tidegate.Spec{Name: "closed", Algorithm: tidegate.Deny})
	front := Options{}.Front(window, slots)
	f := func(d tidegate.Decision, want Refusal, header string) {
		t.Helper()
		h := http.Header{}
		if got := front.Refusal(h, &d); got != want || h.Get("Retry-After") != header {
			t.Errorf("%+v: got %+v, Retry-After %q; want %+v, %q", d, got, h.Get("Retry-After"), want, header)
		}
		if d.Limit == window && h.Get("RateLimit-Policy") != `"window";q=5;w=60, "slots";q=5;qu="concurrent-requests"` {
			t.Errorf("the limits of the front: %v", h)
		}
	}
	f(tidegate.Decision{Limit: window, RetryAfter: 1200 * time.Millisecond},
		Refusal{8, "window", "The quota of the policy window is used up; try again in 2 s.", 1200 * time.Millisecond}, "2")
	f(tidegate.Decision{Limit: window},
		Refusal{8, "window", "The quota of the policy window is used up; try again in 1 s.", time.Millisecond}, "1")
	f(tidegate.Decision{Limit: slots, RetryAfter: time.Minute},
		Refusal{8, "slots", "All slots of the policy slots are taken; try again in 1 s.", time.Second}, "1")
	f(tidegate.Decision{Limit: window, Never: true},
		Refusal{8, "window", "The request costs more than the policy window can ever admit.", 0}, "")
	f(tidegate.Decision{Limit: deny, Never: true},
		Refusal{7, "", "The policy closed does not allow this request.", 0}, "")
	f(tidegate.Decision{Err: errors.New("away"), RetryAfter: time.Second},
		Refusal{14, "", "The limits of this service cannot be checked right now; try again in 1 s.", time.Second}, "1")
	f(tidegate.Decision{Err: ErrMissing},
		Refusal{16, "", "The request does not say who is asking, which its limit goes by.", 0}, "")

	jittered := Options{RetryJitter: 0.5}.Front()
	for range 100 {
		got := jittered.Refusal(http.Header{}, &tidegate.Decision{Limit: window, RetryAfter: time.Second})
		if got.RetryAfter < time.Second || got.RetryAfter > 31*time.Second {
			t.Fatalf("retry after %s, want 1 s to 31 s", got.RetryAfter)
		}
	}
}

func TestKeyOfAFront(t *testing.T) {
	r := &http.Request{RemoteAddr: "192.0.2.1:80", Header: http.Header{"X-User": {"alice"}}}
	f := func(o Options, header, want string, counts bool, fails error) {
		t.Helper()
		key, counted, err := o.Front().Key(r, Header(header))
		if key != want || counted != counts || !errors.Is(err, fails) {
			t.Errorf("%+v, %s: %q, %t, %v", o, header, key, counted, err)
		}
	}
	for _, missing := range []Missing{CountByIP, Skip, Refuse} {
		f(Options{Missing: missing}, "X-User", "alice", true, nil)
	}
	f(Options{}, "X-Other", addressKey("192.0.2.1"), true, nil)
	f(Options{Missing: Skip}, "X-Other", "", false, nil)
	f(Options{Missing: Refuse}, "X-Other", "", false, ErrMissing)
}
