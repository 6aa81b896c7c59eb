package envoy

import (
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

func TestOverride(t *testing.T) {
	d := load(t, "basic.yaml").Domain("shop")
	for _, u := range []Unit{Second, Minute, Hour, Day, Week, Month, Year} {
		for _, n := range []uint32{1, 10, 1<<32 - 1} {
			r, err := d.Override(n, u)
			if err != nil || len(r.Limits) != 1 || r.RequestsPerUnit != n || r.Unit != u || !r.Override || r.Shadow || r.Unlimited || r.Quota || !r.CountRejected {
				t.Errorf("%d/%v: %+v, %v", n, u, r, err)
			}
			if again, _ := d.Override(n, u); again != r {
				t.Errorf("%d/%v is made twice", n, u)
			}
		}
	}
	if r, err := d.Override(0, Day); err != nil || r.Limits[0].Algorithm != tidegate.Deny {
		t.Errorf("0/day: %+v, %v", r, err)
	}
	for u := range 256 {
		u := Unit(u)
		if _, err := d.Override(5, u); (err == nil) != (u >= Second && u <= Week) {
			t.Errorf("the unit %d: %v", u, err)
		}
	}
}

// A refusal under a low limit of one request says nothing about a higher limit of another.
func TestRefusalOfALowOverrideIsNotOneOfAHigher(t *testing.T) {
	store := memory.Open(memory.Config{Now: func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }})
	d := parse(t, "domain: d\n").Domain("d")
	take := func(n uint32, u Unit, e ...Entry) bool {
		t.Helper()
		r, err := d.Override(n, u)
		if err != nil {
			t.Fatal(err)
		}
		got, err := store.Take(t.Context(), []tidegate.Check{{Key: r.Key(e), Limit: r.Limits[0], Cost: 1}}, 1)
		if err != nil {
			t.Fatal(err)
		}
		return got.OK
	}
	a, b := Entry{"user", "ann"}, Entry{"user", "bob"}
	for i, want := range []bool{true, true, false} {
		if take(2, Minute, a) != want {
			t.Errorf("request %d of 2/minute: want %v", i, want)
		}
	}
	if !take(3, Minute, a) || take(3, Minute, a) {
		t.Error("3/minute has other room than for one after two")
	}
	if !take(2, Hour, a) || !take(2, Minute, b) || !take(2, Minute, a, b) {
		t.Error("another unit or another descriptor has no counter of its own")
	}
}

// Requests cannot fill the memory with limits that they bring along.
func TestOverridesAreBounded(t *testing.T) {
	d := parse(t, "domain: d\n").Domain("d")
	for i := range uint32(10 * maxOverrides) {
		if _, err := d.Override(i, Minute); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(d.overrides.rules); n > maxOverrides {
		t.Errorf("%d are kept", n)
	}
	first, _ := d.Override(5, Minute)
	other, _ := d.Override(6, Minute)
	if first.Limits[0].Identity() != other.Limits[0].Identity() {
		t.Error("limits of one unit have counters of their own")
	}
}
