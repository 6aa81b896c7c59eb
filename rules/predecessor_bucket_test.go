package rules

import (
	"testing"
	"time"
)

// Who uses all that a bucket has, all the time, gets its rate and no second burst: neither when another bucket takes
// its place, nor when the old one is not asked any more.
func TestBucketTakesThePlaceOfAnother(t *testing.T) {
	const (
		elastic = ", over: { elastic: { while: cpu < 80%, up_to: 2x } }"
		bucket  = "limits: { rate: 10/minute, algorithm: token_bucket }"
		longer  = "limits: { rate: 20/2m, burst: 10, algorithm: token_bucket }"
		shorter = "limits: { rate: 5/30s, burst: 10, algorithm: token_bucket }"
		hourly  = "limits: { rate: 600/hour, burst: 10, algorithm: token_bucket }"
		smaller = "limits: { rate: 20/2m, burst: 4, algorithm: token_bucket }"
	)
	f := func(name string, versions ...string) {
		t.Helper()
		d := newDesk(t, rulesOf(versions[0]))
		const minutes = 5
		admitted := 0
		for i, terms := range versions {
			if i > 0 {
				d.reload(rulesOf(terms))
			}
			for m := range minutes {
				n := 0
				for range 60 {
					d.wait(time.Second)
					for d.ask(as("GET /", "user", "ann")).OK {
						n++
					}
				}
				if admitted += n; i+m > 0 && n > 10 {
					t.Errorf("%s: %d in minute %d of version %d", name, n, m+1, i+1)
				}
			}
		}
		if most := 10 + 10*minutes*len(versions); admitted > most || admitted < most-10*len(versions) {
			t.Errorf("%s: %d in all, want %d", name, admitted, most)
		}
	}
	f("none", bucket, bucket)
	f("period", bucket, longer)
	f("shorter period", bucket, shorter)
	f("hours", bucket, hourly, bucket)
	f("there and back", bucket, longer, bucket, longer)
	f("smaller burst", bucket, smaller)
	f("hard to elastic", bucket, bucket+elastic)
	f("elastic to hard", bucket+elastic, bucket)
	f("elastic period", bucket+elastic, longer+elastic)
	f("hard to elastic and back", bucket, bucket+elastic, bucket)
}
