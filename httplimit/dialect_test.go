package httplimit

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

const second = 1024 * 1_000_000 // ticks

// at is ten past a full hour.
const at = 1_763_172_600 * second

func TestTrap19HeadersComeFromTheDecisionThatDecided(t *testing.T) {
	admitted := tidegate.Decision{OK: true, Granted: 1, Remaining: 49, ResetAfter: 29001 * time.Millisecond, Receipt: tidegate.Receipt{At: at}}
	refused := tidegate.Decision{Remaining: 0, RetryAfter: 1400 * time.Millisecond, ResetAfter: time.Minute, Receipt: tidegate.Receipt{At: at}}
	never := tidegate.Decision{Never: true, Remaining: 7, ResetAfter: time.Minute, Receipt: tidegate.Receipt{At: at}}
	f := func(o Options, d tidegate.Decision, want string) {
		t.Helper()
		store := &script{decisions: []tidegate.Decision{d}}
		lim := tidegate.New(store, tidegate.MustLimit(tidegate.Spec{Name: "burst", Events: 100, Period: time.Minute}))
		w := get(o.Limit(lim, IP())(hello))
		var got []string
		for _, name := range []string{
			"RateLimit-Policy", "RateLimit", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset",
			"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-Ratelimit-Retry-After", "Retry-After",
		} {
			for _, v := range w.Header().Values(name) {
				got = append(got, name+": "+v)
			}
		}
		if all := strings.Join(got, "\n"); all != want {
			t.Errorf("%+v on %+v:\n%s\nwant:\n%s", o, d, all, want)
		}
		if store.calls != 1 {
			t.Errorf("the store was called %d times for one request", store.calls)
		}
	}
	f(Options{}, admitted, `RateLimit-Policy: "burst";q=100;w=60
RateLimit: "burst";r=49;t=30`)
	f(Options{}, refused, `RateLimit-Policy: "burst";q=100;w=60
RateLimit: "burst";r=0;t=2
Retry-After: 2`)
	f(Options{}, never, `RateLimit-Policy: "burst";q=100;w=60
RateLimit: "burst";r=7;t=60`)
	f(Options{Reset: ResetEpoch}, admitted, `RateLimit-Policy: "burst";q=100;w=60
RateLimit: "burst";r=49;t=30`)
	f(Options{Headers: Draft6}, admitted, `RateLimit-Policy: 100;w=60
RateLimit-Limit: 100
RateLimit-Remaining: 49
RateLimit-Reset: 30`)
	f(Options{Headers: Draft6}, refused, `RateLimit-Policy: 100;w=60
RateLimit-Limit: 100
RateLimit-Remaining: 0
RateLimit-Reset: 2
Retry-After: 2`)
	f(Options{Headers: X}, admitted, `X-RateLimit-Limit: 100
X-RateLimit-Remaining: 49
X-RateLimit-Reset: 30`)
	f(Options{Headers: X}, refused, `X-RateLimit-Limit: 100
X-RateLimit-Remaining: 0
X-RateLimit-Reset: 60
X-Ratelimit-Retry-After: 2
Retry-After: 2`)
	f(Options{Headers: X}, never, `X-RateLimit-Limit: 100
X-RateLimit-Remaining: 7
X-RateLimit-Reset: 60`)
	f(Options{Headers: Draft11 | X}, admitted, `RateLimit-Policy: "burst";q=100;w=60
RateLimit: "burst";r=49;t=30
X-RateLimit-Limit: 100
X-RateLimit-Remaining: 49
X-RateLimit-Reset: 30`)
	f(Options{Headers: Draft11 | X}, refused, `RateLimit-Policy: "burst";q=100;w=60
RateLimit: "burst";r=0;t=2
X-RateLimit-Limit: 100
X-RateLimit-Remaining: 0
X-RateLimit-Reset: 60
X-Ratelimit-Retry-After: 2
Retry-After: 2`)
	f(Options{Headers: Draft11 | X}, never, `RateLimit-Policy: "burst";q=100;w=60
RateLimit: "burst";r=7;t=60
X-RateLimit-Limit: 100
X-RateLimit-Remaining: 7
X-RateLimit-Reset: 60`)
	f(Options{Headers: Draft6 | X}, refused, `RateLimit-Policy: 100;w=60
RateLimit-Limit: 100
RateLimit-Remaining: 0
RateLimit-Reset: 2
X-RateLimit-Limit: 100
X-RateLimit-Remaining: 0
X-RateLimit-Reset: 60
X-Ratelimit-Retry-After: 2
Retry-After: 2`)
	f(Options{Headers: Draft11 | Draft6 | X}, refused, `RateLimit-Policy: "burst";q=100;w=60
RateLimit: "burst";r=0;t=2
RateLimit-Limit: 100
RateLimit-Remaining: 0
RateLimit-Reset: 2
X-RateLimit-Limit: 100
X-RateLimit-Remaining: 0
X-RateLimit-Reset: 60
X-Ratelimit-Retry-After: 2
Retry-After: 2`)
	f(Options{Headers: NoHeaders}, admitted, ``)
	f(Options{Headers: NoHeaders}, refused, `Retry-After: 2`)
}

func TestTrap19ResetDoesNotWobble(t *testing.T) {
	// A window that ends on the full minute, asked about at odd instants. The
	// store rounds what is left to nanoseconds, up or down, and our clock is
	// read a little later than the store's, or is of another opinion.
	const end = at + 60*second
	for stamp := int64(at); stamp < end; stamp += 7_777_777_777 {
		left := float64(end-stamp) / 1024 * 1000
		ours := time.Unix(0, stamp/1024*1000)
		for _, after := range []time.Duration{time.Duration(left), time.Duration(left) + 1} {
			d := tidegate.Decision{OK: true, Receipt: tidegate.Receipt{At: stamp}, ResetAfter: after}
			for _, late := range []time.Duration{0, time.Microsecond, 20 * time.Millisecond, -20 * time.Millisecond, 999 * time.Millisecond} {
				if got := epoch(&d, d.ResetAfter, ours.Add(late)); got != 1_763_172_660 {
					t.Fatalf("asked %d, %s left, our clock %s off: reset at %d, want 1763172660", stamp, after, late, got)
				}
			}
			d.Receipt.At = 0 // a store that does not tell
			for _, late := range []time.Duration{0, time.Microsecond, 20 * time.Millisecond, -20 * time.Millisecond} {
				if got := epoch(&d, d.ResetAfter, ours.Add(late)); got != 1_763_172_660 {
					t.Fatalf("asked %d by our clock, %s off, %s left: reset at %d, want 1763172660", stamp, late, after, got)
				}
			}
		}
	}
}

func TestResetEpochIsTheReset(t *testing.T) {
	f := func(dialect Dialect, d tidegate.Decision, now time.Time, want int64) {
		t.Helper()
		after := d.ResetAfter
		if dialect == Draft6 {
			after = resetAfter(&d)
		}
		if got := epoch(&d, after, now); got != want {
			t.Errorf("%+v: reset at %d, want %d", d, got, want)
		}
	}
	now := time.Unix(1_763_172_600, 0)
	refused := tidegate.Decision{Receipt: tidegate.Receipt{At: at}, RetryAfter: 1400 * time.Millisecond, ResetAfter: time.Minute}
	f(X, refused, now, 1_763_172_660)
	f(Draft6, refused, now, 1_763_172_602)
	f(X, tidegate.Decision{OK: true, Receipt: tidegate.Receipt{At: at}, ResetAfter: 100 * time.Millisecond}, now, 1_763_172_601)
	// The store's time is another: it was suspended, or counts from its start.
	f(X, refused, now.Add(time.Hour), 1_763_176_260)
	f(X, tidegate.Decision{OK: true, Receipt: tidegate.Receipt{At: 5 * second}, ResetAfter: time.Minute}, now, 1_763_172_660)
}

func TestTrap19RetryAfterIsWholeSecondsAndNeverZero(t *testing.T) {
	f := func(after time.Duration, want int) {
		t.Helper()
		store := &script{decisions: []tidegate.Decision{{RetryAfter: after}}}
		w := get(Limit(tidegate.New(store, tidegate.PerMinute(1)), IP())(hello))
		if w.Code != http.StatusTooManyRequests {
			t.Errorf("status %d", w.Code)
		}
		got, err := parseRetryAfter(w.Header().Get("Retry-After"))
		if err != nil || got != time.Duration(want)*time.Second {
			t.Errorf("Retry-After for %s is %s (%v), want %d s", after, got, err, want)
		}
	}
	f(0, 1)
	f(1, 1)
	f(time.Second-1, 1)
	f(time.Second, 1)
	f(time.Second+1, 2)
	f(15*time.Second, 15)
	f(366*24*time.Hour, 366*24*3600)
	f(1<<63-1, 9223372037)
}

// parseRetryAfter reads it as RFC 9110 says and as clients do.
func parseRetryAfter(s string) (time.Duration, error) {
	if n, err := strconv.ParseUint(s, 10, 63); err == nil {
		return time.Duration(n) * time.Second, nil
	}
	at, err := http.ParseTime(s)
	return time.Until(at), err
}

func TestNestedLimitsAreAllReported(t *testing.T) {
	limit := func(name string, remaining int64) func(http.Handler) http.Handler {
		store := &script{decisions: []tidegate.Decision{{OK: true, Remaining: remaining, ResetAfter: time.Second}}}
		return Limit(tidegate.New(store, tidegate.MustLimit(tidegate.Spec{Name: name, Events: 9, Period: time.Second})), IP())
	}
	w := get(limit("outer", 5)(limit("inner", 3)(hello)))
	got := fmt.Sprint(w.Header()["Ratelimit"], w.Header()["Ratelimit-Policy"])
	if want := `["outer";r=5;t=1 "inner";r=3;t=1] ["outer";q=9;w=1 "inner";q=9;w=1]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Inner limits add to the lists of draft 11 and replace the single values, whatever
// dialects are combined.
func TestNestedLimitsInSeveralDialects(t *testing.T) {
	limit := func(name string, remaining int64) func(http.Handler) http.Handler {
		store := &script{decisions: []tidegate.Decision{{OK: true, Remaining: remaining, ResetAfter: time.Second}}}
		return Options{Headers: Draft11 | X}.Limit(tidegate.New(store, tidegate.MustLimit(tidegate.Spec{Name: name, Events: 9, Period: time.Second})), IP())
	}
	w := get(limit("outer", 5)(limit("inner", 3)(hello)))
	got := fmt.Sprint(w.Header()["Ratelimit"], w.Header()["Ratelimit-Policy"], w.Header()["X-Ratelimit-Remaining"])
	if want := `["outer";r=5;t=1 "inner";r=3;t=1] ["outer";q=9;w=1 "inner";q=9;w=1] [3]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSlotsInEveryDialect(t *testing.T) {
	l := tidegate.MustLimit(tidegate.Spec{Name: "slots", Events: 30, Period: time.Minute, Algorithm: tidegate.Concurrency})
	d := tidegate.Decision{OK: true, Granted: 1, Remaining: 12}
	w := get(Options{Headers: Draft11 | Draft6 | X}.Gate(tidegate.NewGate(everyone{l}, &script{decisions: []tidegate.Decision{d}}))(hello))
	want := http.Header{
		"Ratelimit": {`"slots";r=12`}, "Ratelimit-Policy": {`"slots";q=30;qu="concurrent-requests"`},
		"Ratelimit-Limit": {"30"}, "Ratelimit-Remaining": {"12"}, "X-Ratelimit-Limit": {"30"}, "X-Ratelimit-Remaining": {"12"},
	}
	delete(w.Header(), "Content-Type")
	if fmt.Sprint(w.Header()) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", w.Header(), want)
	}
}

func TestHandlerMayChangeTheHeaders(t *testing.T) {
	lim := tidegate.New(&script{}, tidegate.PerMinute(9))
	h := Limit(lim, IP())(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("RateLimit-Policy", `"mine";q=1`)
		w.Header().Del("RateLimit")
	}))
	for range 2 {
		w := get(h)
		if got := fmt.Sprint(w.Header()["Ratelimit-Policy"]); got != `["default";q=9;w=60 "mine";q=1]` {
			t.Errorf("policies %s", got)
		}
		if got := w.Header().Get("RateLimit"); got != "" {
			t.Errorf("RateLimit: %s after it was deleted", got)
		}
	}
}
