package outcome

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

func TestOf(t *testing.T) {
	hour, banned := tidegate.PerHour(1), tidegate.MustLimit(tidegate.Spec{Name: "banned", Algorithm: tidegate.Deny})
	down, left := errors.New("connection refused"), fmt.Errorf("in line: %w", context.Canceled)
	f := func(d tidegate.Decision, want, by string) {
		t.Helper()
		got := ""
		if Decided(&d) {
			got = DecidedBy(d.Receipt.Origin, "redis")
		}
		if Of(&d).String() != want || got != by {
			t.Errorf("%+v is %s by %q, want %s by %q", d, Of(&d), got, want, by)
		}
	}
	f(tidegate.Decision{OK: true}, "ok", "")
	f(tidegate.Decision{OK: true, Limit: hour}, "ok", "redis")
	f(tidegate.Decision{OK: true, Limit: hour, Queued: true}, "waited", "redis")
	f(tidegate.Decision{OK: true, Limit: hour, Queued: true, Soft: true}, "soft", "redis")
	f(tidegate.Decision{OK: true, Limit: hour, Receipt: tidegate.Receipt{Origin: tidegate.OriginLocal}}, "ok", "local")
	f(tidegate.Decision{Limit: hour, RetryAfter: time.Second, Queued: true}, "refused", "redis")
	f(tidegate.Decision{Limit: hour, Receipt: tidegate.Receipt{Origin: tidegate.OriginRemembered}}, "refused", "remembered")
	f(tidegate.Decision{Limit: banned, Never: true, Receipt: tidegate.Receipt{Origin: tidegate.OriginRule}}, "denied", "rule")
	f(tidegate.Decision{Limit: hour, Err: down, Receipt: tidegate.Receipt{Origin: tidegate.OriginRule}}, "error", "rule")
	f(tidegate.Decision{OK: true, Limit: hour, Err: down, Receipt: tidegate.Receipt{Origin: tidegate.OriginRule}}, "error", "rule")
	f(tidegate.Decision{OK: true, Err: down, Receipt: tidegate.Receipt{Origin: tidegate.OriginRule}}, "ok", "")
	f(tidegate.Decision{Err: down}, "error", "")
	f(tidegate.Decision{Limit: hour, Err: left}, "canceled", "")
	f(tidegate.Decision{OK: true, Limit: hour, Err: left}, "canceled", "")
}

// No two outcomes share a word.
func TestWordsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for o := range Outcome(Count) {
		if o.String() == "" || seen[o.String()] {
			t.Errorf("outcome %d is called %q", o, o)
		}
		seen[o.String()] = true
	}
}
