package checkapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/queue"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
)

const tickets = `
rules:
  - { name: tokens, match: POST /chat, per: ip, limits: 100/hour }
  - { name: login, match: POST /login, per: ip, limits: 2/hour, count: { status: 401 } }
  - { name: render, match: /render, per: ip, concurrency: { slots: 1, lease: 30s } }
  - { name: llm, match: POST /llm, per: ip, limits: 100/hour, cost: { reserve: body.max, else: 10, settle: response.body.used } }
`

// onStores runs f on counters in memory and in Redis. Two servers share the counters in
// Redis; in memory they are the same.
func onStores(t *testing.T, f func(t *testing.T, here, there http.Handler)) {
	t.Run("memory", func(t *testing.T) {
		s := serverOn(t, queue.New(chain.Adapt(memory.New())), tickets, nil)
		f(t, s, s)
	})
	t.Run("redis", func(t *testing.T) {
		server := testdep.Redis(t)
		open := func() tidegate.Store {
			s, err := fleet.Open("redis://"+server.Addr, fleet.Options{Deadline: 10 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			return s
		}
		f(t, serverOn(t, open(), tickets, patient), serverOn(t, open(), tickets, patient))
	})
}

func patient(o *Options) { o.Deadline = 30 * time.Second }

// fails expects a problem.
func fails(t *testing.T, s http.Handler, verb, body string, status int) {
	t.Helper()
	if w := ask(t, s, "POST", "/v1/"+verb, body); w.Code != status {
		t.Errorf("POST /v1/%s %s: %d %s, want %d", verb, body, w.Code, w.Body, status)
	}
}

// Of five parallel reservations of 100 under a limit of 100 one is admitted. Settled with
// 37 it gives 63 back; settled twice it changes nothing.
func TestReserve(t *testing.T) {
	onStores(t, func(t *testing.T, here, there http.Handler) {
		answers := make(chan string)
		for i := range 5 {
			go func() {
				s := here
				if i%2 == 1 {
					s = there
				}
				w := ask(t, s, "POST", "/v1/reserve", `{"method":"POST","path":"/chat","ip":"192.0.2.1","cost":100}`)
				answers <- w.Body.String()
			}()
		}
		ticket := ""
		for range 5 {
			var a answer
			if err := json.Unmarshal([]byte(<-answers), &a); err != nil {
				t.Fatal(err)
			}
			if a.Decision == "allowed" {
				if ticket != "" {
					t.Error("two were admitted")
				}
				ticket = a.Ticket
			}
		}
		if ticket == "" {
			t.Fatal("none was admitted")
		}
		left := func() int64 {
			return post(t, here, "peek", `{"method":"POST","path":"/chat","ip":"192.0.2.1"}`).Remaining
		}
		if n := left(); n != 0 {
			t.Errorf("%d left of what is reserved", n)
		}
		settle := `{"ticket":"` + ticket + `","cost":37}`
		post(t, there, "settle", settle)
		if n := left(); n != 63 {
			t.Errorf("%d left, want 63", n)
		}
		fails(t, here, "settle", settle, http.StatusConflict)
		fails(t, there, "settle", `{"ticket":"`+ticket+`","cost":0}`, http.StatusConflict)
		fails(t, there, "report", `{"ticket":"`+ticket+`","cost":100,"status":200}`, http.StatusConflict)
		if n := left(); n != 63 {
			t.Errorf("%d left after settling twice, want 63", n)
		}
		// More than was reserved is charged unasked.
		a := post(t, here, "reserve", `{"method":"POST","path":"/chat","ip":"192.0.2.1","cost":3}`)
		post(t, there, "settle", `{"ticket":"`+a.Ticket+`","cost":50}`)
		if n := left(); n != 13 {
			t.Errorf("%d left, want 13", n)
		}
	})
}

// A reservation that nobody settles stays charged, and cannot be settled once it has
// expired.
func TestReserveExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, "rules: [{ name: tokens, match: POST /chat, per: ip, quota: 100/week }]", nil)
		a := post(t, s, "reserve", `{"method":"POST","path":"/chat","ip":"192.0.2.1","cost":60}`)
		time.Sleep(tidegate.ReserveTTL + time.Minute)
		fails(t, s, "settle", `{"ticket":"`+a.Ticket+`","cost":0}`, http.StatusConflict)
		if now := post(t, s, "peek", `{"method":"POST","path":"/chat","ip":"192.0.2.1"}`); now.Remaining != 40 {
			t.Errorf("%+v", now)
		}
	})
}

// The same in Redis, whose record is made to expire.
func TestReserveExpiresInRedis(t *testing.T) {
	server := testdep.Redis(t)
	store, err := fleet.Open("redis://"+server.Addr, fleet.Options{Deadline: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	s := serverOn(t, store, tickets, patient)
	a := post(t, s, "reserve", `{"method":"POST","path":"/chat","ip":"192.0.2.1","cost":60}`)
	records := strings.Fields(server.Do("KEYS", "*:reservation:*"))
	if len(records) != 1 {
		t.Fatalf("there is not one record: %q", records)
	}
	left, err := time.ParseDuration(server.Do("PTTL", records[0]) + "ms")
	if err != nil || left > tidegate.ReserveTTL+time.Minute || left < tidegate.ReserveTTL-time.Minute {
		t.Errorf("it expires in %v, %v", left, err)
	}
	server.Do("PEXPIRE", records[0], "1")
	testdep.Eventually(t, "the record is gone", func() bool { return server.Do("EXISTS", records[0]) == "0" })
	fails(t, s, "settle", `{"ticket":"`+a.Ticket+`","cost":0}`, http.StatusConflict)
	if now := post(t, s, "peek", `{"method":"POST","path":"/chat","ip":"192.0.2.1"}`); now.Remaining != 40 {
		t.Errorf("%+v", now)
	}
}

// What counts by status counts until the status is reported.
func TestReport(t *testing.T) {
	onStores(t, func(t *testing.T, here, there http.Handler) {
		try := func(status int, want string) {
			t.Helper()
			a := post(t, here, "check", `{"method":"POST","path":"/login","ip":"192.0.2.1"}`)
			if a.Decision != want {
				t.Fatalf("%+v, want %s", a, want)
			}
			if a.Decision == "allowed" && status > 0 {
				post(t, there, "report", fmt.Sprintf(`{"ticket":%q,"status":%d}`, a.Ticket, status))
			}
		}
		for range 4 {
			try(200, "allowed")
		}
		try(401, "allowed")
		try(0, "allowed") // nobody reports: it counts
		try(0, "limited")
	})
}

// An estimate of the rules is settled as well.
func TestSettleCost(t *testing.T) {
	onStores(t, func(t *testing.T, here, there http.Handler) {
		a := post(t, here, "check", `{"method":"POST","path":"/llm","ip":"192.0.2.1","body":{"max":80}}`)
		if b := post(t, there, "check", `{"method":"POST","path":"/llm","ip":"192.0.2.1","body":{"max":21}}`); a.Decision != "allowed" || b.Decision != "limited" {
			t.Fatalf("%+v, %+v", a, b)
		}
		post(t, there, "settle", `{"ticket":"`+a.Ticket+`","cost":20}`)
		if b := post(t, there, "check", `{"method":"POST","path":"/llm","ip":"192.0.2.1","body":{"max":80}}`); b.Decision != "allowed" || b.Remaining != 0 {
			t.Errorf("%+v", b)
		}
	})
}

// A slot is held until it is released, anywhere.
func TestAcquire(t *testing.T) {
	onStores(t, func(t *testing.T, here, there http.Handler) {
		const question = `{"path":"/render","ip":"192.0.2.1"}`
		a := post(t, here, "acquire", question)
		if b := post(t, there, "acquire", question); a.Decision != "allowed" || a.Ticket == "" || b.Decision != "limited" || b.Ticket != "" {
			t.Fatalf("%+v, then %+v", a, b)
		}
		ticket := `{"ticket":"` + a.Ticket + `"}`
		post(t, there, "renew", ticket)
		post(t, there, "release", ticket)
		fails(t, here, "renew", ticket, http.StatusConflict)
		if b := post(t, here, "acquire", question); b.Decision != "allowed" {
			t.Errorf("%+v", b)
		}
		if none := post(t, here, "acquire", `{"path":"/elsewhere"}`); none.Decision != "allowed" || none.Ticket != "" || none.Reason == "" {
			t.Errorf("%+v", none)
		}
	})
}

// A lease that nobody renews runs out.
func TestLeaseRunsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, tickets, nil)
		const question = `{"path":"/render","ip":"192.0.2.1"}`
		ticket := `{"ticket":"` + post(t, s, "acquire", question).Ticket + `"}`
		for range 3 {
			time.Sleep(20 * time.Second)
			post(t, s, "renew", ticket)
		}
		if a := post(t, s, "acquire", question); a.Decision != "limited" {
			t.Errorf("%+v", a)
		}
		time.Sleep(31 * time.Second)
		fails(t, s, "renew", ticket, http.StatusConflict)
		if a := post(t, s, "acquire", question); a.Decision != "allowed" {
			t.Errorf("%+v", a)
		}
	})
}

// Tickets of counters that another process has are told as such.
func TestTicketOfAnotherProcess(t *testing.T) {
	a := post(t, newServer(t, tickets, nil), "reserve", `{"method":"POST","path":"/chat","ip":"192.0.2.1","cost":60}`)
	fails(t, newServer(t, tickets, nil), "settle", `{"ticket":"`+a.Ticket+`","cost":0}`, http.StatusMisdirectedRequest)
}

// A cost may be any number: one that is far above what was reserved takes what there is, and
// nothing is given by it.
func TestSettleAnyCost(t *testing.T) {
	onStores(t, func(t *testing.T, here, there http.Handler) {
		for i, cost := range []string{"101", "268435456", "4611686018427387904", "9223372036854775807"} {
			question := fmt.Sprintf(`{"method":"POST","path":"/chat","ip":"192.0.2.%d","cost":10}`, i+1)
			a := post(t, here, "reserve", question)
			post(t, there, "settle", `{"ticket":"`+a.Ticket+`","cost":`+cost+`}`)
			if now := post(t, there, "check", question); now.Decision != "limited" || now.Remaining != 0 || now.RetryAfter > 2*now.ResetAfter+1 {
				t.Errorf("after a cost of %s: %+v", cost, now)
			}
			fails(t, here, "settle", `{"ticket":"`+a.Ticket+`","cost":0}`, http.StatusConflict)
		}
	})
}
