package main

import (
	"strings"
	"testing"
)

// Each promise is one that a wrong store would break.
func TestBroken(t *testing.T) {
	s := size{keys: 1000, maxBytes: 1_000_000}
	good := outcome{Came: 1000, Keys: 500, Evicted: debtors + 500, Admitted: 1000, MaxKeys: debtors + 1000, MaxTable: 900_000, PeakRSS: 9_000_000}
	f := func(name, want string, change func(o *outcome)) {
		t.Helper()
		c, err := findCase(name)
		if err != nil {
			t.Fatal(err)
		}
		o := good
		change(&o)
		got := strings.Join(c.broken(s, o), "\n")
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: broken %q, want %q", name, got, want)
		}
	}
	for _, c := range cases {
		f(c.name, "", func(*outcome) {})
		f(c.name, "the table had", func(o *outcome) { o.MaxTable = 1_000_001 })
		f(c.name, "resident", func(o *outcome) { o.PeakRSS = 70_000_000 })
		f(c.name, "room for", func(o *outcome) { o.MaxKeys = 500; o.Admitted, o.Evicted = 100_000, 100_000+debtors-o.Keys })
		f(c.name, "came within", func(o *outcome) { o.Came = 999 })
		f(c.name, "neither", func(o *outcome) { o.Wrong = 1 })
		f(c.name, "refused for want of room", func(o *outcome) { o.Refused = 3 })
		f(c.name, "knew 1 debtors no more", func(o *outcome) { o.Again = 1; o.Keys++ })
		f(c.name, "counted as evicted", func(o *outcome) { o.Evicted-- })
	}
	forgotten := func(o *outcome) { o.Again, o.Forgotten, o.Evicted = 1, 7, o.Evicted-6 }
	f("light", "were forgotten", forgotten)
	f("heavy-evict", "", forgotten)
	f("heavy-refuse", "were forgotten", forgotten)
	f("heavy-evict", "others are to be evicted", func(o *outcome) { o.Refused, o.RefusedFull = 1, 1 })
	f("heavy-refuse", "new ones are to be refused", func(o *outcome) { o.Forgotten = 1 })
}
