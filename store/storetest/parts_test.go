package storetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

func TestSelections(t *testing.T) {
	f := func(want string, rest int, all ...Selection) {
		t.Helper()
		_, left, err := resolve(all)
		if want == "" && (err != nil || len(left) != rest) {
			t.Errorf("resolve(%v) = %d left, %v; want %d left", all, len(left), err, rest)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("resolve(%v) = %v, want %q", all, err, want)
		}
	}
	parts := allParts()
	f("", 0)
	f("", 0, Only(parts...))
	f("", len(parts)-2, Only("quota", "floors"))
	f("", len(parts)-2, Only("quota"), Only("floors"))
	f("", 0, Brief())
	f("", len(parts)-1, Brief(), Only("quota"))
	f(`there is no part "token bucket"; there are token_bucket, leaky_bucket,`, 0, Only("token bucket"))
	f(`there is no part ""`, 0, Only("token_bucket", ""))
	f("no algorithm is selected; there are token_bucket,", 0, Only("floors"))
	f("no algorithm is selected", 0, Only())
	if len(slices.Compact(slices.Sorted(slices.Values(parts)))) != len(parts) {
		t.Errorf("a part is there twice: %q", parts)
	}
}

// A brief run is a long one where there is time.
func TestBrief(t *testing.T) {
	f := func(long string, want bool, all ...Selection) {
		t.Helper()
		t.Setenv("TIDEGATE_LONG", long)
		if got := isBrief(all); got != want {
			t.Errorf("TIDEGATE_LONG=%s: %v is brief: %t", long, all, got)
		}
	}
	f("", false)
	f("", false, Only("quota"))
	f("", true, Only("quota"), Brief())
	f("1", false, Only("quota"), Brief())
}

// A part that is named needs a store that can do it.
func TestSelectedAbilities(t *testing.T) {
	type plain struct{ tidegate.Store }
	whole := newReference(time.Now)
	for _, part := range []string{"renewals", "reservations", "resets"} {
		a, _, err := resolve([]Selection{Only("quota", part)})
		if err != nil {
			t.Fatal(err)
		}
		if lacking := a.lacks(whole); lacking != "" {
			t.Errorf("the reference lacks %s", lacking)
		}
		if a.lacks(plain{whole}) == "" {
			t.Errorf("nobody notices that a store has no %s", part)
		}
	}
}

// Each part that a call uses is found.
func TestPartsOfCalls(t *testing.T) {
	bucket := kinds[0].slow("bucket", 5)
	raw := tidegate.MustLimit(tidegate.Spec{Events: 5, Period: time.Hour, Algorithm: tidegate.TokenBucket, RawTime: true})
	rejected := tidegate.MustLimit(tidegate.Spec{Events: 5, Period: time.Hour, Algorithm: tidegate.SlidingLog, CountRejected: true})
	f := func(n int, want string, checks ...tidegate.Check) {
		t.Helper()
		got := partsOf(checks, n)
		slices.Sort(got)
		if strings.Join(slices.Compact(got), " ") != want {
			t.Errorf("Take(%s, %d) uses %q, want %q", describe(checks), n, got, want)
		}
	}
	c := tidegate.Check{Key: "ann", Limit: bucket, Cost: 1}
	f(1, "token_bucket", c)
	f(2, "copies token_bucket", c)
	f(0, "misuse token_bucket", c)
	f(1, "token_bucket vectors", c, c)
	f(1, "vectors")
	f(1, "raw_time token_bucket", tidegate.Check{Limit: raw})
	f(1, "count_rejected sliding_log", tidegate.Check{Limit: rejected})
	f(1, "misuse", tidegate.Check{Limit: bucket, Cost: -1})
	for _, k := range kinds {
		f(1, k.spec.Algorithm.String(), check(k.slow("any", 5), "ann", 1))
	}
	waits, advises, leaves := c, c, c
	waits.MaxWait, advises.Advisory, leaves.Floor = time.Second, true, 1
	f(1, "token_bucket waiting", waits)
	f(1, "advisory token_bucket", advises)
	f(1, "floors token_bucket", leaves)
}
