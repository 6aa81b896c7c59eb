package memory

import (
	"fmt"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// lateClock is a clock whose next reading comes late: between the reading and its use, somebody else acts.
type lateClock struct {
	at      time.Time
	between func() // nil if nobody does
}

func (c *lateClock) now() time.Time {
	at, between := c.at, c.between
	if c.between = nil; between != nil {
		between()
	}
	return at
}

// A caller that loses its processor right after it has read the clock, while others use all but the last event at a
// later time, gets that last one: by every algorithm, by the short and the long way, about keys that are known or not.
// The one after it is refused, and told when there is room.
func TestLateClock(t *testing.T) {
	const events = 5
	ways := []struct {
		name   string
		known  bool // the key was used before, long ago
		other  bool // another key was asked about last
		beside bool // with a second limit
		marks  bool // with a second limit that only marks
	}{
		{name: "first"},
		{name: "hot", known: true},
		{name: "searched", known: true, other: true},
		{name: "vector", known: true, beside: true},
		{name: "first vector", beside: true},
		{name: "marked", known: true, marks: true},
		{name: "first marked", marks: true},
	}
	for _, a := range bounded {
		for _, way := range ways {
			for _, late := range []time.Duration{2 * time.Millisecond, 30 * time.Millisecond, 900 * time.Millisecond} {
				t.Run(fmt.Sprintf("%s/%s/%s", a, way.name, late), func(t *testing.T) {
					clock := &lateClock{at: noon}
					s := Open(Config{Now: clock.now})
					l := limitOf(a, events, tidegate.EvictLeast)
					wide := tidegate.MustLimit(tidegate.Spec{Name: "wide", Events: 1000, Period: 24 * time.Hour, Algorithm: tidegate.TokenBucket})
					capacity := l.Capacity()
					take := func(key string) tidegate.Decision {
						checks := []tidegate.Check{{Key: key, Limit: l, Cost: 1}}
						if way.beside || way.marks {
							checks = append(checks, tidegate.Check{Key: key, Limit: wide, Cost: 1, Advisory: way.marks})
						}
						d, err := s.Take(t.Context(), checks, 1)
						if err != nil {
							t.Fatal(err)
						}
						return d
					}
					if way.known {
						take("k")
						clock.at = clock.at.AddDate(0, 2, 0)
					}
					if way.other {
						take("other")
					}
					clock.between = func() {
						clock.at = clock.at.Add(late)
						for range capacity - 1 {
							if d := take("k"); !d.OK {
								t.Fatalf("%+v", d)
							}
						}
					}
					if d := take("k"); !d.OK {
						t.Fatalf("refused for %s, although one was left", d.RetryAfter)
					}
					d := take("k")
					if d.OK || d.RetryAfter <= 0 {
						t.Fatalf("%+v, want a refusal", d)
					}
					clock.at = clock.at.Add(d.RetryAfter - time.Microsecond)
					if early := take("k"); early.OK {
						t.Errorf("told %s, and admitted a microsecond before", d.RetryAfter)
					}
					clock.at = clock.at.Add(time.Microsecond)
					if again := take("k"); !again.OK {
						t.Errorf("told %s, and refused for %s then", d.RetryAfter, again.RetryAfter)
					}
				})
			}
		}
	}
}
