package rules

import (
	"context"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// set puts measures in force that all hold.
func (d *desk) set(all ...Measure) {
	d.t.Helper()
	for i := range all {
		if err := d.live.Set().CheckMeasure(&all[i]); err != nil {
			d.t.Fatal(err)
		}
	}
	if problems := d.live.SetMeasures(all); problems != nil {
		d.t.Fatal(problems)
	}
}

// Events that were used count on when an override begins and when it ends: nobody is refilled,
// and nobody has to wait for what the other limit would not have counted.
func TestOverrideKeepsWhatWasUsed(t *testing.T) {
	for _, k := range limitKinds {
		if k.name == "leaky_bucket" { // see TestOverrideOfALeakyBucket
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			d := newDesk(t, "identify: { user: header X-User }\nrules: [{ name: api, per: user, "+with(k.limit, 10)+" }]\n")
			by := func(user string) *tidegate.Request {
				r := request("GET /", "header X-User", user)
				switch {
				case strings.Contains(k.limit, "N000"):
					r.Cost = 1000
				case strings.Contains(k.limit, "N00"):
					r.Cost = 100
				}
				return r
			}
			requests := func(number int) int {
				switch k.name {
				case "soft":
					return 2 * number
				case "cost":
					return number / 2
				}
				return number
			}
			more := override("o-1", "user=ann", "api", with(k.order, 40))
			d.passes(requests(10), by("ann"))
			d.set(more)
			d.passes(requests(30), by("ann"))
			d.passes(requests(10), by("bob"))
			d.set()
			d.refuses(by("ann"))
			d.set(override("o-2", "user=ann", "api", "unlimited"))
			d.admits(100, by("ann"))
			d.set()
			d.refuses(by("ann"))
			// A limit that is lower holds as well, and what it did not admit is still there.
			d.set(override("o-3", "user=eve", "api", with(k.order, 4)))
			d.passes(requests(4), by("eve"))
			d.set()
			d.passes(requests(6), by("eve"))
			// It ends by itself.
			more.ID, more.As, more.Until = "o-4", whom("user=zoe"), d.clock.Add(time.Millisecond)
			d.set(more)
			d.passes(requests(40), by("zoe"))
			d.clock = more.Until
			d.refuses(by("zoe"))
		})
	}
}

// Requests of a leaky bucket leave at the pace of the override, behind those that have their
// turns already.
func TestOverrideOfALeakyBucket(t *testing.T) {
	d := newDesk(t, "identify: { user: header X-User }\nrules: [{ name: api, per: user, limits: { rate: 60/minute, algorithm: leaky_bucket }, queue: { places: 3, max_wait: 10s } }]\n")
	ann := request("GET /", "header X-User", "ann")
	turn := func(want time.Duration) {
		t.Helper()
		if a := d.ask(ann); !a.OK || (a.Wait-want).Abs() > time.Millisecond {
			t.Errorf("waits %s, want %s", a.Wait, want)
		}
	}
	for i := range 3 {
		turn(time.Duration(i) * time.Second)
	}
	d.set(override("o-1", "user=ann", "api", "600/minute"))
	turn(300 * time.Millisecond)
	d.refuses(ann) // its queue has as many places as before
	d.set()
	d.refuses(ann)
}

// An override leaves a block as it is, unless it is unlimited; one that ends lets it hold again.
func TestOverrideAndBlock(t *testing.T) {
	d := newDesk(t, "identify: { user: header X-User }\nrules: [{ name: api, per: user, limits: 2/minute, block: 10m }]\n")
	ann := request("GET /", "header X-User", "ann")
	d.passes(2, ann)
	d.set(override("o-1", "user=ann", "api", "100/minute"))
	if a := d.refuses(ann); a.RetryAfter != 10*time.Minute || a.Limit.Terms.Role != tidegate.Blocks || a.Limit.Terms.Answer.Nominal.Events != 100 {
		t.Errorf("%+v", a)
	}
	d.set(override("o-2", "user=ann", "api", "unlimited"))
	d.admits(10, ann)
	d.set()
	d.wait(9 * time.Minute)
	if a := d.refuses(ann); a.RetryAfter != time.Minute {
		t.Errorf("%+v", a)
	}
	// What an override refuses starts the block of the rule.
	d.wait(time.Hour)
	d.set(override("o-3", "user=ann", "api", "3/minute"))
	d.passes(3, ann)
	d.set()
	if a := d.refuses(ann); a.RetryAfter != 10*time.Minute {
		t.Errorf("%+v", a)
	}
}

// Limits of another period are counted apart, as those of a tier are, and do not touch what the
// rule has counted.
func TestOverrideOfAnotherPeriod(t *testing.T) {
	d := newDesk(t, "identify: { user: header X-User }\nrules: [{ name: api, per: user, limits: [10/minute, 20/hour] }]\n")
	ann := request("GET /", "header X-User", "ann")
	d.passes(10, ann)
	d.set(override("o-1", "user=ann", "api", "50/day", "12/minute"))
	d.passes(2, ann)
	d.wait(time.Minute)
	d.admits(12, ann)
	d.set()
	d.refuses(ann)
	d.wait(time.Minute)
	d.passes(10, ann) // 10 were counted by the hour, and 10 are now
	d.set(override("o-1", "user=ann", "api", "50/day"))
	d.passes(50-14, ann)
}

// A request that was admitted holds its slot until it ends, whatever measure begins or ends
// meanwhile, and gives back what does not count.
func TestOverrideOfRequestsInFlight(t *testing.T) {
	d := newDesk(t, `
identify: { user: header X-User }
rules:
  - { name: slots, per: user, concurrency: { slots: 2, lease: 30s } }
  - { name: fails, per: user, limits: 2/minute, count: { status: [401] } }
`)
	enter := func(want bool) *tidegate.Visit {
		t.Helper()
		a, v := d.gate.Enter(context.Background(), request("GET /", "header X-User", "ann"))
		if a.OK != want {
			t.Fatalf("%+v, want %v", a, want)
		}
		return v
	}
	end := func(v *tidegate.Visit) {
		t.Helper()
		if err := v.End(tidegate.Outcome{Status: 200}); err != nil {
			t.Error(err)
		}
	}
	first := []*tidegate.Visit{enter(true), enter(true)}
	enter(false)
	d.set(override("o-1", "user=ann", "slots", "4 slots"), override("o-2", "user=ann", "fails", "4/minute"))
	more := []*tidegate.Visit{enter(true), enter(true)}
	enter(false)
	d.set()
	enter(false)
	for _, v := range more {
		end(v)
	}
	enter(false)
	d.set(ban("b-1", "user=ann", ""))
	enter(false)
	end(first[0])
	d.set()
	end(enter(true))
	end(first[1])
	enter(true)
	enter(true)
	enter(false)
}
