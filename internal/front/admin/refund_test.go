package admin

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/redis"
)

// everyAlgorithm has a rule per algorithm that something can be given back to, of 40 events.
var everyAlgorithm = map[string]string{
	"sliding_log":    "limits: 40/minute",
	"sub_windows":    "limits: { rate: 40/minute, algorithm: sub_windows }",
	"ceiling":        "limits: { rate: 40/minute, algorithm: sub_windows, ceiling: true }",
	"token_bucket":   "limits: { rate: 40/minute, algorithm: token_bucket }",
	"fixed_window":   "limits: { rate: 40/minute, algorithm: fixed_window }",
	"sliding_window": "limits: { rate: 40/minute, algorithm: sliding_window }",
	"quota":          "quota: { amount: 40/month }",
}

func userRule(limit string) string {
	return "identify: { user: header X-User }\nrules: [{ name: api, match: /api/, per: user, " + limit + " }]\n"
}

// refund asks for events back, and returns the only counter.
func (d *desk) refund(t *testing.T, body string, n int64) Counter {
	t.Helper()
	k := d.keys(t, "POST", "/keys/refund", fmt.Sprintf(`{"as":{"user":"42"},"events":%d%s}`, n, body))
	if len(k.Counters) != 1 {
		t.Fatalf("counters: %+v", k.Counters)
	}
	return k.Counters[0]
}

// Whenever the events came, a refund gives back as many as it says: all that were asked for,
// or all that are used, and never more. Nothing else changes.
func TestRefundGivesBackWhatWasUsed(t *testing.T) {
	for name, limit := range everyAlgorithm {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(30) {
				synctest.Test(t, func(t *testing.T) { refundOnce(t, limit, seed) })
			}
		})
	}
}

func refundOnce(t *testing.T, limit string, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	d := newDesk(t, userRule(limit), nil)
	for range random.IntN(60) {
		d.charge(t, "GET /api/", "user", "42")
		time.Sleep(time.Duration(random.Int64N(int64(3 * time.Second))))
	}
	q := Question{As: map[string]string{"user": "42"}}
	before := d.get(t, q)[0]
	n := 1 + random.Int64N(50)
	preview := d.refund(t, `,"preview":true`, n)
	if again := d.get(t, q)[0]; again.Remaining != before.Remaining {
		t.Errorf("seed %d: a preview changed %+v to %+v", seed, before, again)
	}
	after := d.refund(t, "", n)
	used := before.Capacity - before.Remaining
	if gained := after.Remaining - before.Remaining; gained > min(n, used) || gained < min(n, used)-1 { // windows that weigh round
		t.Errorf("seed %d: of %d used, %d were to be given back: %+v became %+v", seed, used, n, before, after)
	}
	if after.Refunded > n || after.Refunded > used+1 || preview.Refunded != min(n, used) {
		t.Errorf("seed %d: %d of %d used were given back, %d were announced, %d asked for", seed, after.Refunded, used, preview.Refunded, n)
	}
}

// The same in Redis, by its own clock.
func TestRefundInRedis(t *testing.T) {
	addr := testdep.Redis(t).Addr
	store, err := redis.Open(redis.Config{URL: "redis://" + addr, Deadline: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for name, limit := range everyAlgorithm {
		limit = strings.Replace(limit, "/minute", "/week", 1) // nothing comes back during the test
		d := newDesk(t, userRule(limit), func(o *Options) { o.Store = store })
		d.gate = tidegate.NewGate(d.rules.live, store)
		d.reset(t, Question{As: map[string]string{"user": "42"}})
		for range 40 {
			if !d.charge(t, "GET /api/", "user", "42") {
				t.Fatalf("%s: refused within its limit", name)
			}
		}
		left := d.refund(t, "", 7)
		if left.Remaining != 7 || left.Refunded != 7 || !left.OK {
			t.Errorf("%s: after a refund of 7: %+v", name, left)
		}
		if all := d.refund(t, "", 1000); all.Remaining != 40 || all.Refunded != 33 {
			t.Errorf("%s: after a refund of all: %+v", name, all)
		}
		if none := d.refund(t, "", 5); none.Remaining != 40 || none.Refunded != 0 {
			t.Errorf("%s: after a refund of nothing: %+v", name, none)
		}
	}
}

// What is owed beyond the limit is given back first, and only what was asked for.
func TestRefundOfADebt(t *testing.T) {
	for _, name := range []string{"sliding_log", "sub_windows", "fixed_window"} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(t, userRule(everyAlgorithm[name]), nil)
			store := d.store
			found := d.get(t, Question{As: map[string]string{"user": "42"}})
			r, err := (&Question{URL: "/api/", As: map[string]string{"user": "42"}}).request()
			if err != nil || len(found) != 1 {
				t.Fatal(err)
			}
			checks := d.rules.live.Match(r, nil)
			checks[0].Cost = 50
			for range 2 {
				if err := store.Adjust(context.Background(), tidegate.Receipt{}, checks[:1]); err != nil {
					t.Fatal(err)
				}
				checks[0].Cost = 8
				time.Sleep(2 * time.Second)
			}
			if got := d.refund(t, "", 20); got.Remaining != 2 || got.Refunded != 20 { // 58 used of 40
				t.Errorf("%s: %+v", name, got)
			}
		})
	}
}

func TestRefundThatCannotBe(t *testing.T) {
	d := newDesk(t, few, nil)
	f := func(body, part string) {
		t.Helper()
		problem(t, d.ask("POST", "/keys/refund", body), 400, part)
	}
	f(`{"as":{"ip":"192.0.2.1"}}`, "at least 1")
	f(`{"as":{"ip":"192.0.2.1"},"events":-1}`, "at least 1")
	f(`{"as":{"ip":"192.0.2.1"},"events":268435456}`, "at most 268435455")
	f(`{"as":{"ip":"192.0.2.1"},"events":1e30}`, "cannot be read")
	f(`{"events":1}`, "does not say whose")
	f(`{"as":{"ip":"192.0.2.1"},"events":1,"reason":"a\nb"}`, "a line of text")
	problem(t, d.ask("POST", "/keys/refund", `{"rule":"apo","as":{"ip":"192.0.2.1"},"events":1}`), 404, "did you mean api?")
	problem(t, d.ask("POST", "/keys/reset", `{"as":{"ip":"192.0.2.1"},"events":1}`), 400, "/keys/refund")
	// Slots are released by whoever holds them, and turns are of requests that wait.
	for _, limit := range []string{"concurrency: { slots: 2, lease: 30s }", "limits: { rate: 5/minute, algorithm: leaky_bucket }, queue: { places: 5, max_wait: 1m }"} {
		d = newDesk(t, userRule(limit), nil)
		d.charge(t, "GET /api/", "user", "42")
		before := d.get(t, Question{As: map[string]string{"user": "42"}})[0]
		if after := d.refund(t, "", 1); after.Refunded != 0 || after.Remaining != before.Remaining {
			t.Errorf("%s: %+v became %+v", limit, before, after)
		}
	}
}
