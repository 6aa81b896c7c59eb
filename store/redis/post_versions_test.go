package redis

import (
	"context"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// What a node of a narrower version admitted in an outage is charged on top of what a wider version has used, though that is
// more than it may charge unasked.
func TestPostsOfANarrowerVersion(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{Addrs: []string{testdep.Redis(t).Addr}})
	for _, l := range postLimits() {
		of := l.Spec
		if isBucket(l) {
			of.Period = 30 * 24 * time.Hour
		}
		wide := tidegate.MustLimit(of)
		for _, alike := range []bool{false, true} { // versions of a bucket with the same pace
			spec := wide.Spec
			if isBucket(wide) {
				spec.Burst = 99
			}
			if !alike {
				spec.Events = 100
			}
			narrow := tidegate.MustLimit(spec)
			key := narrow.String()
			post := func(number uint64, l *tidegate.Limit, cost int64) {
				t.Helper()
				p := chain.Post{Boot: [2]uint64{1, 2}, Number: number, Check: tidegate.Check{Key: key, Limit: l, Cost: cost}}
				if err := in(s).Post(context.Background(), p); err != nil {
					t.Fatal(err)
				}
			}
			post(1, wide, 500)
			post(2, narrow, 50)
			if got := usedOf(t, s, wide, key); got != 550 {
				t.Errorf("%s beside %s: %d used, want 550", narrow, wide, got)
			}
			reset := mustTake(t, s, 1, tidegate.Check{Key: key, Limit: wide, MaxWait: wide.Period}).ResetAfter
			if isBucket(wide) && reset > 550*wide.Period/1000+time.Second {
				t.Errorf("%s beside %s: it drains in %s", narrow, wide, reset)
			}
		}
	}
}

func isBucket(l *tidegate.Limit) bool {
	return l.Algorithm == tidegate.TokenBucket || l.Algorithm == tidegate.LeakyBucket
}
