package httplimit

import (
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// spreadBy is what is added to the Retry-After of a minute, in each of many refusals.
func spreadBy(t *testing.T, o Options, l *tidegate.Limit, times int) []int {
	t.Helper()
	d := tidegate.Decision{Limit: l, RetryAfter: time.Minute, ResetAfter: time.Minute}
	h := o.Gate(tidegate.NewGate(everyone{l}, &script{decisions: []tidegate.Decision{d}}))(hello)
	var by []int
	for range times {
		after, err := strconv.Atoi(get(h).Header().Get("Retry-After"))
		if err != nil {
			t.Fatal(err)
		}
		by = append(by, after-60)
	}
	return by
}

func span(all []int) (low, high int) {
	low, high = all[0], all[0]
	for _, n := range all {
		low, high = min(low, n), max(high, n)
	}
	return low, high
}

// Aligned windows are spread upward, up to the share of the window and an hour; every
// other limit says what the Decision says.
func TestRetryJitterIsForAlignedWindows(t *testing.T) {
	f := func(spec tidegate.Spec, options, rule float64, most int) {
		t.Helper()
		terms := tidegate.Terms{Answer: tidegate.Answer{RetryJitter: rule}}
		if spec.Terms != nil {
			terms.Role = spec.Terms.Role
		}
		spec.Terms = &terms
		low, high := span(spreadBy(t, Options{RetryJitter: options}, tidegate.MustLimit(spec), 400))
		if low < 0 || high > most || most > 2 && (low > most/4 || high < most*3/4) {
			t.Errorf("%s, %v and %v: from %d to %d s later, want up to %d", spec.Algorithm, options, rule, low, high, most)
		}
	}
	minute := tidegate.Spec{Events: 5, Period: time.Minute, Algorithm: tidegate.FixedWindow}
	f(minute, 0, 0, 0)
	f(minute, 0.1, 0, 6)
	f(minute, 1, 0, 60)
	f(minute, 0, 0.5, 30)
	f(minute, 1, 0.1, 6)          // the rule goes before the options
	f(minute, 0.5, -1, 0)         // also if it wants none
	f(minute, 0, 7, 60)           // more than there is
	f(minute, 0, math.NaN(), 0)   // nonsense
	f(minute, 0, math.Inf(1), 60) // nonsense as well
	f(tidegate.Spec{Events: 5, Period: 24 * time.Hour, Algorithm: tidegate.FixedWindow}, 0.01, 0, 864)
	f(tidegate.Spec{Events: 5, Period: 24 * time.Hour, Algorithm: tidegate.FixedWindow}, 0.5, 0, 3600)
	for _, c := range []tidegate.Calendar{tidegate.Day, tidegate.Week, tidegate.Month, tidegate.Year} {
		f(tidegate.Spec{Events: 5, Algorithm: tidegate.Quota, Calendar: c}, 0.5, 0, 3600)
	}
	f(tidegate.Spec{Events: 5, Algorithm: tidegate.Quota, Calendar: tidegate.Day}, 0.01, 0, 864)
	for _, a := range []tidegate.Algorithm{
		tidegate.TokenBucket, tidegate.LeakyBucket, tidegate.SlidingLog, tidegate.SlidingWindow, tidegate.SubWindows,
	} {
		f(tidegate.Spec{Events: 5, Period: time.Minute, Algorithm: a}, 1, 0, 0)
	}
	block := minute
	block.Terms = &tidegate.Terms{Role: tidegate.Blocks}
	f(block, 1, 0, 0) // it begins with each client's own refusal
	f(block, 1, 1, 0)
	slots := tidegate.Slots(3, time.Minute)
	if low, high := span(spreadBy(t, Options{RetryJitter: 1}, slots, 50)); low != 1-60 || high != 1-60 {
		t.Errorf("slots: from %d to %d, want a Retry-After of 1", low, high)
	}
}

// All that one answer says of the wait is the same, in every combination of dialects.
func TestRetryJitterIsOneInAnAnswer(t *testing.T) {
	l := tidegate.MustLimit(tidegate.Spec{
		Name: "api", Events: 5, Period: time.Minute, Algorithm: tidegate.FixedWindow,
		Terms: &tidegate.Terms{Answer: tidegate.Answer{Body: "{retry_after}"}},
	})
	plain := tidegate.MustLimit(tidegate.Spec{Name: "api", Events: 5, Period: time.Minute, Algorithm: tidegate.FixedWindow})
	inEntry := regexp.MustCompile(`;t=(\d+)$`)
	inText := regexp.MustCompile(`try again in (\d+) s`)
	for dialect := Draft11; dialect <= NoHeaders; dialect++ {
		for _, limit := range []*tidegate.Limit{l, plain} {
			told := map[string]bool{}
			for range 20 {
				now := time.Now()
				d := tidegate.Decision{Limit: limit, RetryAfter: 30500 * time.Millisecond, ResetAfter: 30500 * time.Millisecond, Receipt: tidegate.Receipt{At: now.UnixMicro() * 1024}}
				o := Options{Headers: dialect, RetryJitter: 1}
				w := get(o.Gate(tidegate.NewGate(everyone{limit}, &script{decisions: []tidegate.Decision{d}}))(hello))
				want := w.Header().Get("Retry-After")
				told[want] = true
				body := w.Body.String()
				if limit == plain {
					body = inText.FindStringSubmatch(body)[1]
				}
				got := []string{body}
				if dialect&Draft11 != 0 {
					got = append(got, inEntry.FindStringSubmatch(w.Header().Get("RateLimit"))[1])
				}
				if dialect&Draft6 != 0 {
					got = append(got, w.Header().Get("RateLimit-Reset"))
				}
				if dialect&X != 0 {
					got = append(got, w.Header().Get("X-RateLimit-Reset"), w.Header().Get("X-RateLimit-Retry-After"))
				}
				for _, text := range got {
					if text != want {
						t.Errorf("dialects %b: Retry-After %s, and also %s", dialect, want, got)
					}
				}
				if dialect&(Draft6|X) == 0 {
					continue
				}
				o.Reset = ResetEpoch
				w = get(o.Gate(tidegate.NewGate(everyone{limit}, &script{decisions: []tidegate.Decision{d}}))(hello))
				after, _ := strconv.ParseInt(w.Header().Get("Retry-After"), 10, 64)
				for _, name := range []string{"RateLimit-Reset", "X-RateLimit-Reset"} {
					// Both are rounded up by themselves, and a moment up to clockSlack past a full second
					// is that second: see epoch.
					at, err := strconv.ParseInt(w.Header().Get(name), 10, 64)
					if off := at - now.Unix() - after; w.Header().Get(name) != "" && (err != nil || off < -1 || off > 1) {
						t.Errorf("dialects %b: %s is %d s after Retry-After, %v", dialect, name, off, err)
					}
				}
			}
			if len(told) < 3 {
				t.Errorf("dialects %b: of 20 refusals all were told one of %v", dialect, told)
			}
		}
	}
}

// Only what is written to the client is spread.
func TestRetryJitterLeavesTheDecisionExact(t *testing.T) {
	l := tidegate.MustLimit(tidegate.Spec{Name: "api", Events: 5, Period: time.Hour, Algorithm: tidegate.FixedWindow})
	exact := tidegate.Decision{Limit: l, RetryAfter: 14500 * time.Millisecond, ResetAfter: 14500 * time.Millisecond}
	same := func(who string, d tidegate.Decision) {
		if d.RetryAfter != exact.RetryAfter || d.ResetAfter != exact.ResetAfter {
			t.Errorf("%s sees %s and %s, want %s", who, d.RetryAfter, d.ResetAfter, exact.RetryAfter)
		}
	}
	o := Options{
		RetryJitter: 1,
		OnDecision:  func(_ *http.Request, d tidegate.Decision) { same("OnDecision", d) },
		Render: func(w http.ResponseWriter, _ *http.Request, d tidegate.Decision) {
			same("Render", d)
			w.WriteHeader(Status(d))
		},
	}
	later := 0
	for range 20 {
		w := get(o.Limit(tidegate.New(&script{decisions: []tidegate.Decision{exact}}, l), IP())(hello))
		if w.Header().Get("Retry-After") != "15" {
			later++
		}
	}
	if later == 0 {
		t.Error("nobody was told to come later")
	}
	// The longest wait there is stays one.
	endless := tidegate.Decision{Limit: l, RetryAfter: math.MaxInt64, ResetAfter: math.MaxInt64}
	w := get(Options{RetryJitter: 1}.Limit(tidegate.New(&script{decisions: []tidegate.Decision{endless}}, l), IP())(hello))
	if got := w.Header().Get("Retry-After"); len(got) != len("9223372037") {
		t.Errorf("Retry-After %s", got)
	}
	// Coming again does not help whom the limit can never admit, and an admitted
	// request has nothing to wait for.
	for _, d := range []tidegate.Decision{{Never: true, Remaining: 5, ResetAfter: time.Minute}, {OK: true, Granted: 1, ResetAfter: time.Minute}} {
		for range 20 {
			w := get(Options{RetryJitter: 1}.Limit(tidegate.New(&script{decisions: []tidegate.Decision{d}}, l), IP())(hello))
			if got := w.Header().Get("RateLimit"); got != fmt.Sprintf(`"api";r=%d;t=60`, d.Remaining) {
				t.Errorf("%+v: %s", d, got)
			}
		}
	}
}

func TestOptionsRefuseNonsense(t *testing.T) {
	f := func(o Options, ok bool) {
		t.Helper()
		defer func() {
			if why := recover(); (why == nil) != ok {
				t.Errorf("%+v: %v", o, why)
			}
		}()
		o.check()
	}
	for dialect := range Dialect(255) {
		f(Options{Headers: dialect}, dialect <= NoHeaders)
	}
	for jitter, ok := range map[float64]bool{0: true, 0.1: true, 1: true, -0.1: false, 1.01: false, 10: false, math.Inf(1): false} {
		f(Options{RetryJitter: jitter}, ok)
	}
	f(Options{RetryJitter: math.NaN()}, false)
}
