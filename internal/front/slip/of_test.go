package slip_test

import (
	"errors"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/slip"
)

// A refusal by any algorithm has a slip that says by what and whom.
func TestOf(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	f := func(spec tidegate.Spec, d tidegate.Decision, limit string, flags slip.Flags) {
		t.Helper()
		spec.Name, spec.Scope = "api 1", "user"
		if spec.Terms == nil {
			spec.Terms = &tidegate.Terms{}
		}
		spec.Terms.Rule = "api"
		l, err := tidegate.NewLimit(spec)
		if err != nil {
			t.Fatal(err)
		}
		same, err := tidegate.NewLimit(spec) // as a layer may have replaced it
		if err != nil {
			t.Fatal(err)
		}
		other, err := tidegate.NewLimit(tidegate.Spec{Name: "other", Events: 7, Period: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		d.Limit, d.RetryAfter = l, 3*time.Second
		got := slip.Of([]tidegate.Check{{Key: "no", Limit: other}, {Key: "42", Limit: same}, {Key: "never", Limit: same}}, &d, now)
		want := slip.Slip{At: now, Rule: "api", Scope: "user", Key: "42", Limit: limit, RetryAfter: 3 * time.Second, Flags: flags}
		if limit != "" {
			want.Capacity = l.Capacity()
		}
		if got != want {
			t.Errorf("got %+v\nwant %+v", got, want)
		}
	}
	second := func(a tidegate.Algorithm) tidegate.Spec {
		return tidegate.Spec{Events: 5, Period: time.Second, Algorithm: a}
	}
	f(second(tidegate.TokenBucket), tidegate.Decision{}, "5/1s token_bucket burst 5", 0)
	f(second(tidegate.LeakyBucket), tidegate.Decision{}, "5/1s leaky_bucket burst 0", 0)
	f(second(tidegate.FixedWindow), tidegate.Decision{}, "5/1s fixed_window", 0)
	f(second(tidegate.SlidingLog), tidegate.Decision{}, "5/1s sliding_log", 0)
	f(second(tidegate.SlidingWindow), tidegate.Decision{}, "5/1s sliding_window", 0)
	f(second(tidegate.SubWindows), tidegate.Decision{Never: true}, "5/1s sub_windows", slip.Never)
	f(second(tidegate.Concurrency), tidegate.Decision{Err: errors.New("no answer")}, "5 slots, lease 1s", slip.Unsure)
	f(tidegate.Spec{Events: 5, Calendar: tidegate.Month, Algorithm: tidegate.Quota}, tidegate.Decision{Receipt: tidegate.Receipt{Origin: tidegate.OriginLocal}}, "5/month quota", slip.Local)
	f(tidegate.Spec{Algorithm: tidegate.Deny}, tidegate.Decision{Never: true}, "", slip.Never|slip.Denied)
	blocks := second(tidegate.FixedWindow)
	blocks.Terms = &tidegate.Terms{Role: tidegate.Blocks}
	f(blocks, tidegate.Decision{}, "5/1s fixed_window", slip.Blocked)

	if got, want := slip.Of(nil, &tidegate.Decision{Err: errors.New("no answer")}, now), (slip.Slip{At: now, Flags: slip.Unsure}); got != want {
		t.Errorf("without a limit: %+v", got)
	}
}
