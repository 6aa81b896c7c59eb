package resp

import (
	"errors"
	"testing"

	"tidegate.dev/tidegate"
)

// However decisions alternate, each is counted once, with those that ended as it did.
func TestRunsAreCounted(t *testing.T) {
	limit := tidegate.PerMinute(5)
	kinds := []tidegate.Decision{
		{OK: true, Limit: limit},
		{Limit: limit},
		{OK: true, Limit: limit, Receipt: tidegate.Receipt{Origin: tidegate.OriginLocal}},
		{OK: true, Limit: limit, Err: errors.New("away")},
		{Limit: limit, Err: errors.New("away")},
	}
	got := make([]int64, len(kinds))
	c := &conn{srv: &Server{o: Options{Counted: func(d *tidegate.Decision, n int64) {
		for i, k := range kinds {
			if d.OK == k.OK && d.Err == k.Err && d.Receipt.Origin == k.Receipt.Origin {
				got[i] += n
			}
		}
	}}}}
	want := make([]int64, len(kinds))
	for i := range 1000 {
		k := i / 10 % len(kinds)
		want[k]++
		c.noted(&kinds[k])
		if i%64 == 63 {
			c.count()
		}
	}
	c.count()
	c.count() // nothing is left
	for i := range kinds {
		if got[i] != want[i] {
			t.Errorf("%+v: %d, want %d", kinds[i], got[i], want[i])
		}
	}
}
