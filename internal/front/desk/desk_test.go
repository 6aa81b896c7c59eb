package desk_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/queue"
	"tidegate.dev/tidegate/internal/front/desk"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

const everything = `
version: 1
rules:
  - { name: tokens, match: POST /chat, per: ip, limits: 100/hour }
  - { name: fixed, match: POST /chat, per: ip, limits: 5/hour, cost: 1 }
  - { name: login, match: POST /login, per: ip, limits: 2/hour, count: { status: 401 } }
  - { name: line, match: /line, per: everyone, limits: { rate: 1/second, algorithm: leaky_bucket }, queue: { places: 10, max_wait: 1m } }
  - { name: lane, match: /lane, per: everyone, limits: { rate: 1/minute, algorithm: fixed_window }, queue: { places: 10, max_wait: 1h } }
  - { name: feed, match: /feed, per: ip, limits: 3/hour, over: { elastic: { while: cpu < 50%, up_to: 2x } } }
  - { name: search, match: /search, per: ip, limits: 10/hour, over: { soft: 20% } }
  - { name: render, match: /render, per: ip, concurrency: { slots: 1, lease: 30s } }
  - { name: private, match: /private, deny: true }
`

type idle struct{}

func (idle) Signal(string) (float64, bool) { return 0, true }

func newDesk(t *testing.T) *desk.Desk {
	t.Helper()
	set, err := rules.Parse("rules.yaml", []byte(everything), rules.Config{Signals: idle{}})
	if err != nil {
		t.Fatal(err)
	}
	return desk.New(tidegate.NewGate(set, queue.New(chain.Adapt(memory.New()))))
}

type by string

func (b by) Value(name string) (string, bool) { return string(b), name == "ip" }

func request(line string) *tidegate.Request {
	method, path, _ := strings.Cut(line, " ")
	return &tidegate.Request{Method: method, Path: path, Values: by("192.0.2.1")}
}

// What cannot be held or seen to its end is refused, and told for how long.
func TestUnattended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		f := func(line string, want ...string) {
			t.Helper()
			for i, want := range want {
				got := d.Check(t.Context(), request(line))
				if said := fmt.Sprint(desk.Word(&got), " ", got.RetryAfter); said != want || got.Wait != 0 || got.Waited != 0 {
					t.Errorf("%s, number %d: %s, want %s (%+v)", line, i+1, said, want, got)
				}
			}
		}
		f("GET /line", "allowed 0s", "limited 1s")
		f("GET /lane", "allowed 0s", "limited 1m0s")
		f("GET /feed", "allowed 0s", "allowed 0s", "allowed 0s", "limited 1h0m0s")
		f("POST /login", "allowed 0s", "allowed 0s", "limited 1h0m0s")
		f("GET /private", "denied 0s")
		f("GET /elsewhere", "allowed 0s")
	})
}

// Five at once ask for all there is: one gets it. It is settled once, and what it did not
// use is there again; the rule with a cost of its own charged that.
func TestReserve(t *testing.T) {
	d := newDesk(t)
	ask := func(cost int64) desk.Answer {
		r := request("POST /chat")
		r.Cost = cost
		return d.Reserve(t.Context(), r)
	}
	answers := make(chan desk.Answer)
	for range 5 {
		go func() { answers <- ask(100) }()
	}
	ticket := ""
	for range 5 {
		if a := <-answers; a.OK {
			if ticket != "" {
				t.Error("two of them got it")
			}
			ticket = a.Ticket
		}
	}
	settle := func() error {
		return d.Settle(t.Context(), ticket, tidegate.Outcome{Cost: 37, CostKnown: true})
	}
	if err := settle(); err != nil {
		t.Fatal(err)
	}
	if err := settle(); !errors.Is(err, tidegate.ErrSettled) {
		t.Errorf("settled twice: %v", err)
	}
	if a := ask(64); a.OK {
		t.Errorf("more than is left was reserved: %+v", a)
	}
	if a := ask(63); !a.OK {
		t.Errorf("what was given back cannot be reserved: %+v", a)
	}
	for _, u := range d.Usage(t.Context(), request("POST /chat")) {
		if want := map[string]int64{"tokens": 100, "fixed": 2}[u.Rule]; u.Used != want {
			t.Errorf("%+v, want %d used", u, want)
		}
	}
}

func TestReport(t *testing.T) {
	d := newDesk(t)
	f := func(status int, ok bool) {
		t.Helper()
		a := d.Open(t.Context(), request("POST /login"))
		if a.OK != ok {
			t.Fatalf("%+v, want %t", a, ok)
		}
		if ok {
			if err := d.Settle(t.Context(), a.Ticket, tidegate.Outcome{Status: status}); err != nil {
				t.Error(err)
			}
		}
	}
	for range 10 {
		f(200, true)
	}
	f(401, true)
	f(401, true)
	f(0, false)
}

func TestSlots(t *testing.T) {
	d := newDesk(t)
	a := d.Open(t.Context(), request("GET /render"))
	if b := d.Open(t.Context(), request("GET /render")); !a.OK || b.OK || b.Ticket != "" {
		t.Fatalf("%+v, then %+v", a, b)
	}
	if err := errors.Join(d.Renew(t.Context(), a.Ticket), d.Release(t.Context(), a.Ticket)); err != nil {
		t.Fatal(err)
	}
	if b := d.Open(t.Context(), request("GET /render")); !b.OK {
		t.Errorf("%+v", b)
	}
}

func TestNoTicket(t *testing.T) {
	d := newDesk(t)
	for _, text := range []string{"", "x", "tt1_", "tt1_e30", "tr1_AAAA", strings.Repeat("tt1_", 1<<20)} {
		for _, err := range []error{d.Settle(t.Context(), text, tidegate.Outcome{}), d.Renew(t.Context(), text), d.Release(t.Context(), text)} {
			if !errors.Is(err, desk.ErrTicket) {
				t.Errorf("%.20q: %v", text, err)
			}
		}
	}
}

// A caller is told the limit, and what is left of it; asking costs nothing.
func TestUsage(t *testing.T) {
	d := newDesk(t)
	for range 4 {
		d.Check(t.Context(), request("GET /search"))
	}
	for range 3 {
		all := d.Usage(t.Context(), request("GET /search"))
		if len(all) != 1 {
			t.Fatalf("%+v", all)
		}
		if u := all[0]; u.Rule != "search" || u.Limit.Capacity() != 10 || u.Used != 4 || u.Remaining != 6 || u.RetryAfter != 0 || u.ResetAfter > time.Hour {
			t.Errorf("%+v", u)
		}
	}
	if all := d.Usage(t.Context(), request("GET /private")); len(all) != 0 {
		t.Errorf("%+v", all)
	}
}

// Nothing remains for a caller who is blocked.
func TestUsageOfTheBlocked(t *testing.T) {
	set, err := rules.Parse("rules.yaml", []byte("version: 1\nrules: [{ name: posts, per: ip, limits: 5/hour, block: 2h }]"), rules.Config{})
	if err != nil {
		t.Fatal(err)
	}
	d := desk.New(tidegate.NewGate(set, memory.New()))
	for range 6 {
		d.Check(t.Context(), request("GET /"))
	}
	blocked := 0
	for _, u := range d.Usage(t.Context(), request("GET /")) {
		if u.Rule != "posts" || u.Limit.Capacity() != 5 || u.Used != 5 || u.Remaining != 0 {
			t.Errorf("%+v", u)
		}
		if u.Blocked {
			blocked++
		}
	}
	if blocked != 1 {
		t.Errorf("%d blocks are told of", blocked)
	}
}

// Held tells what would decide, with keys, and that something is denied.
func TestHeld(t *testing.T) {
	d := newDesk(t)
	checks, denied := d.Held(t.Context(), request("POST /chat"))
	if len(checks) != 2 || denied || checks[0].Key != checks[1].Key || checks[0].Limit.Events+checks[1].Limit.Events != 105 {
		t.Errorf("%+v, %t", checks, denied)
	}
	if checks, denied := d.Held(t.Context(), request("GET /private")); len(checks) != 0 || !denied {
		t.Errorf("%+v, %t", checks, denied)
	}
	if checks, denied := d.Held(t.Context(), request("GET /elsewhere")); len(checks) != 0 || denied {
		t.Errorf("%+v, %t", checks, denied)
	}
	for _, u := range d.Usage(t.Context(), request("POST /chat")) {
		if u.Used != 0 {
			t.Errorf("asking costs something: %+v", u)
		}
	}
}
