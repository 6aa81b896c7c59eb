package rules

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// A process that goes on with the counters of another, under other rules, refills nobody
// either; nor does one after a change that its predecessor still had in hand.
func TestRecall(t *testing.T) {
	for from, old := range limitVariants {
		for to, new := range limitVariants {
			d := newDesk(t, rulesOf(old))
			d.wait(7 * time.Second)
			for d.ask(as("GET /", "user", "ann")).OK {
			}
			for _, between := range []string{"", limitVariants["log"]} {
				if between != "" {
					d.reload(rulesOf(between))
				}
				data, err := d.live.Remember()
				if err != nil {
					t.Fatal(err)
				}
				next := NewLive(parse(t, rulesOf(new), d.config()))
				if _, err := next.Recall(data); err != nil {
					t.Fatal(err)
				}
				if got, want := show(next.Match(as("GET /", "user", "ann"), nil)), show(d.swapped(new)); got != want {
					t.Errorf("%s to %s: held to\n%sand by a reload to\n%s", from, to, got, want)
				}
			}
		}
	}
}

// swapped is what ann is held to after a reload, which is then taken back.
func (d *desk) swapped(terms string) []tidegate.Check {
	d.t.Helper()
	f := d.live.force.Load()
	d.reload(rulesOf(terms))
	checks := d.live.Match(as("GET /", "user", "ann"), nil)
	d.live.force.Store(f)
	return checks
}

func TestRecallOfEveryKind(t *testing.T) {
	d := newDesk(t, rulesOf("limits: [5/second, { rate: 9/hour, algorithm: token_bucket }], quota: { amount: 10/month, anchor: header X-Since }, block: 15m, "+
		"over: { soft: 20% }, candidate: 3/minute, for: [{ when: { user: bob }, concurrency: { slots: 3, lease: 1m } }] }\n"+
		"  - { name: spread, per: user, limits: 5/second, quota: { amount: 10/month, anchor: header X-Since }, consistency: split }\n"+
		"  - { name: ahead, per: user, limits: 5/second, consistency: leased"))
	data, err := d.live.Remember()
	if err != nil {
		t.Fatal(err)
	}
	changes, err := d.live.Recall(data)
	if err != nil || len(changes) > 0 || d.live.force.Load().before != nil {
		t.Errorf("the same rules: %v, %v, %v", changes, err, d.live.force.Load().before)
	}
}

func TestRecallOfSomethingElse(t *testing.T) {
	d := newDesk(t, rulesOf(limitVariants["log"]))
	for _, data := range []string{
		"", "{", "[]", `{"ledger":[null]}x`, `{"ledger":[{"rule":"api","scopes":["user"],"plans":[{"by":[[{"name":"api","algorithm":"none"}]]}]}]}`,
		`{"before":[{"of":"x","counter":{"name":"api","algorithm":"fixed_window"}}]}`,
		`{"before":[{"of":"x","counter":{"name":"api","events":1,"period":1000000000,"algorithm":"fixed_window","consistency":"never"}}]}`,
		`{"before":[{"of":"x","counter":{"name":"api","events":1,"algorithm":"quota","calendar":1,"anchored":true}}]}`,
	} {
		if _, err := d.live.Recall([]byte(data)); err == nil {
			t.Errorf("%s was recalled", data)
		}
	}
	for _, data := range []string{`{}`, `{"ledger":[null]}`, `{"ledger":[{"rule":"api","scopes":["user"],"plans":[{}]}]}`, `{"before":[{}]}`} {
		if _, err := d.live.Recall([]byte(data)); err != nil {
			t.Errorf("%s: %v", data, err)
		}
	}
	var limits []string
	for i := range maxRemembered/2 + 1 { // each for those with a name and those without
		limits = append(limits, fmt.Sprintf("5/%dms", 1000+i))
	}
	many := newDesk(t, rulesOf("limits: ["+strings.Join(limits, ", ")+"]"))
	if _, err := many.live.Remember(); !errors.Is(err, ErrTooManyLimits) {
		t.Errorf("too many limits: %v", err)
	}
}
