package resp_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/front/resp"
	"tidegate.dev/tidegate/store/memory"
)

// eachStore runs f on counters in memory and in Redis. forget makes what is not settled yet
// too late to settle.
func eachStore(t *testing.T, f func(t *testing.T, store tidegate.Store, forget func())) {
	t.Run("memory", func(t *testing.T) {
		clock := newClock()
		f(t, memory.Open(memory.Config{Now: clock.now}), func() { clock.add(tidegate.ReserveTTL + time.Second) })
	})
	t.Run("redis", func(t *testing.T) {
		server := testdep.Redis(t)
		store, err := fleet.Open("redis://"+server.Addr, fleet.Options{Deadline: testTimeout})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		f(t, store, func() {
			t.Helper()
			records := strings.Fields(redisCLI(t, server.Addr, "KEYS", "*:reservation:*"))
			if len(records) != 1 {
				t.Fatalf("records: %q", records)
			}
			redisCLI(t, server.Addr, "DEL", records[0]) // as when its time is over
		})
	})
}

// Five at once reserve all there is: one gets it. It is settled once, and what it did not
// use is there again. One that is never settled stays charged.
func TestReserve(t *testing.T) {
	eachStore(t, func(t *testing.T, store tidegate.Store, forget func()) {
		_, c := serve(t, resp.Options{Desk: newDesk(t, store), Store: store})
		tickets := make(chan string, 5)
		var all sync.WaitGroup
		for range 5 {
			one := c.another()
			all.Go(func() {
				got := fields(one.do("TG.RESERVE PATH /chat METHOD POST IP 192.0.2.1 COST 100"))
				if got["decision"] == "allowed" {
					tickets <- got["ticket"]
				} else if got["decision"] != "limited" || got["ticket"] != "" || got["rule"] != "tokens" {
					t.Errorf("%v", got)
				}
			})
		}
		all.Wait()
		close(tickets)
		if len(tickets) != 1 {
			t.Fatalf("%d of five reservations of all there is were admitted", len(tickets))
		}
		ticket := <-tickets
		left := func(want string) {
			t.Helper()
			if got := fields(c.do("TG.PEEK PATH /chat METHOD POST IP 192.0.2.1")); got["remaining"] != want {
				t.Errorf("%v, want %s remaining", got, want)
			}
		}
		left("0")
		c.want("TG.SETTLE "+ticket+" COST 37", ":1|")
		left("63")
		for _, cost := range []string{"37", "0", "100"} {
			c.want("TG.SETTLE "+ticket+" COST "+cost, ":0|")
			left("63")
		}
		late := fields(c.do("TG.RESERVE PATH /chat METHOD POST IP 192.0.2.1 COST 60"))["ticket"]
		forget()
		left("3")
		c.want("TG.SETTLE "+late+" COST 1", ":0|")
		left("3")
	})
}

// What counts by the outcome counts, unless the client comes back with the ticket and tells.
func TestReport(t *testing.T) {
	eachStore(t, func(t *testing.T, store tidegate.Store, _ func()) {
		_, c := serve(t, resp.Options{Desk: newDesk(t, store)})
		f := func(ip, want string) string {
			t.Helper()
			got := fields(c.do("TG.CHECK PATH /login METHOD POST IP " + ip))
			if got["decision"] != want || (got["ticket"] != "") != (want == "allowed") {
				t.Errorf("%s: %v, want %s", ip, got, want)
			}
			return got["ticket"]
		}
		for range 10 {
			c.want("TG.SETTLE "+f("192.0.2.1", "allowed")+" STATUS 200", ":1|")
		}
		c.want("TG.SETTLE "+f("192.0.2.1", "allowed")+" STATUS 401", ":1|")
		c.want("TG.SETTLE "+f("192.0.2.1", "allowed")+" STATUS 401", ":1|")
		f("192.0.2.1", "limited")
		f("192.0.2.2", "allowed")
		f("192.0.2.2", "allowed")
		f("192.0.2.2", "limited")
	})
}

// A slot is held until it is released.
func TestSlots(t *testing.T) {
	eachStore(t, func(t *testing.T, store tidegate.Store, _ func()) {
		_, c := serve(t, resp.Options{Desk: newDesk(t, store)})
		const acquire = "TG.ACQUIRE PATH /render IP 192.0.2.1"
		ticket := fields(c.do(acquire))["ticket"]
		if got := fields(c.do(acquire)); got["decision"] != "limited" || got["ticket"] != "" {
			t.Errorf("%v", got)
		}
		c.want("TG.RENEW "+ticket, ":1|")
		c.want("TG.RELEASE "+ticket, ":1|")
		c.want("TG.RENEW "+ticket, ":0|")
		if got := fields(c.do(acquire)); got["decision"] != "allowed" {
			t.Errorf("%v", got)
		}
		// Nothing is to be held where no rule has slots.
		if got := fields(c.do("TG.ACQUIRE PATH /posts AS user 1")); got["decision"] != "allowed" || got["ticket"] != "" || !strings.Contains(got["reason"], "concurrency") {
			t.Errorf("%v", got)
		}
	})
}

// As much as is allowed is answered, one more is an error, and then nothing is charged.
func TestRequestBounds(t *testing.T) {
	_, c := serve(t, resp.Options{Desk: newDesk(t, memory.New())})
	f := func(user string, most int, wrong string, words func(n int) []string) {
		t.Helper()
		if got := c.call(append(words(most), "AS", "user", user)...); strings.HasPrefix(got, "-") {
			t.Errorf("%d: %.200s", most, got)
		}
		if got := c.call(append(words(most+1), "AS", "user", user)...); !strings.Contains(got, wrong) {
			t.Errorf("%d: %.200s, want %s", most+1, got, wrong)
		}
		if got := fields(c.do("TG.PEEK PATH /posts AS user " + user)); got["remaining"] != "2" {
			t.Errorf("%s: %v", wrong, got)
		}
	}
	repeat := func(n int, words []string, more ...string) []string {
		for i := range n {
			for _, w := range more {
				words = append(words, strings.ReplaceAll(w, "#", fmt.Sprint(i)))
			}
		}
		return words
	}
	f("1", 128, "ERR too many headers", func(n int) []string { return repeat(n, []string{"TG.CHECK", "PATH", "/posts"}, "HEADER", "X-#", "v") })
	f("2", 63, "ERR too many identities", func(n int) []string { return repeat(n, []string{"TG.CHECK", "PATH", "/posts"}, "AS", "i#", "v") })
	f("3", 127, "ERR too many requests in one command, at most 128", func(n int) []string {
		return append(repeat(n, []string{"TG.MCHECK"}, "PATH", "/elsewhere", "NEXT"), "PATH", "/posts")
	})
	f("4", 8<<10, "longer than 8192 bytes", func(n int) []string {
		return []string{"TG.CHECK", "PATH", "/posts?" + strings.Repeat("x", n-len("/posts?"))}
	})
}

// away is a store that does not answer.
type away struct{ tidegate.Store }

func (away) Take(context.Context, []tidegate.Check, int) (tidegate.Decision, error) {
	return tidegate.Decision{}, errors.New("away")
}

// What the store does not tell is not told as if it were used up.
func TestUsageOfAStoreThatIsAway(t *testing.T) {
	_, c := serve(t, resp.Options{Desk: newDesk(t, away{memory.New()})})
	c.want("TG.USAGE PATH /posts AS user 42", "*1|*14|$4|rule|$5|posts|$5|limit|:3|$4|used|:-1|$9|remaining|:-1|$11|retry_after|:0|$11|reset_after|:0|$7|blocked|:0|")
	if got := fields(c.do("TG.CHECK PATH /posts AS user 42")); got["limit"] != "-1" || got["remaining"] != "-1" {
		t.Errorf("%v", got)
	}
}

// A body is read as the gateway reads it.
func TestBody(t *testing.T) {
	store := memory.New()
	_, c := serve(t, resp.Options{Desk: newDesk(t, store)})
	f := func(account, want string) {
		t.Helper()
		got := fields(c.call("TG.CHECK", "PATH", "/body", "METHOD", "POST", "HEADER", "Content-Type", "application/json", "BODY", `{"account": "`+account+`"}`))
		if got["decision"] != want {
			t.Errorf("%s: %v, want %s", account, got, want)
		}
	}
	f("a", "allowed")
	f("a", "limited")
	f("b", "allowed")
}

// CL.THROTTLE on counters that a fleet shares: two instances, one counter.
func TestThrottleOnFleet(t *testing.T) {
	server := testdep.Redis(t)
	// The seconds that are told are those of a key that was used within one.
	testdep.Undisturbed(t, 250*time.Millisecond, func(t testing.TB) {
		server.Do("FLUSHALL")
		open := func() *client {
			store, err := fleet.Open("redis://"+server.Addr, fleet.Options{Deadline: testTimeout})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = store.Close() })
			_, c := serve(t, resp.Options{Desk: newDesk(t, store), Store: store})
			return c
		}
		here, there := open(), open()
		f := func(c *client, args, want string) {
			t.Helper()
			if got := c.five(args); got != want {
				t.Errorf("CL.THROTTLE %s: got %q, want %q", args, got, want)
			}
		}
		f(here, "k 9 1 3600 4", "0 10 6 -1 14400")
		f(there, "k 9 1 3600 4", "0 10 2 -1 28800")
		f(here, "k 9 1 3600 3", "1 10 2 3600 28800")
		f(there, "k 9 1 3600 3", "1 10 2 3600 28800")
		f(here, "k 9 1 3600 11", "1 10 2 -1 28800")
		f(there, "k 9 1 3600 0", "0 10 2 -1 28800")
		f(there, "k 19 2 3600 0", "0 20 4 -1 28800") // the same time, in other events
		f(here, "k 1 1 3600 1", "1 2 0 25200 28800")
		f(here, "k 19 2 3600 4", "0 20 0 -1 36000")
		f(there, "k 9 1 3600 -6", "0 10 6 -1 14400")
		f(here, "k 9 1 3600", "0 10 5 -1 18000")
		there.want("DEL k other", ":1|")
		f(here, "k 9 1 3600 0", "0 10 10 -1 0")
	}, server)
}

// What is pipelined to counters far away is asked at once, and answered in order: each key
// as if its commands had come one by one.
func TestPipelineOnFleet(t *testing.T) {
	server := testdep.Redis(t)
	// As above.
	testdep.Undisturbed(t, 250*time.Millisecond, func(t testing.TB) {
		server.Do("FLUSHALL")
		var calls atomic.Int64
		store, err := fleet.Open("redis://"+server.Addr, fleet.Options{Deadline: testTimeout, OnCall: func(time.Duration) { calls.Add(1) }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		var seen, counted, logged atomic.Int64
		_, c := serve(t, resp.Options{
			Store:   store,
			Observe: func(*tidegate.Request, []tidegate.Check, tidegate.Decision) { seen.Add(1) },
			Counted: func(_ *tidegate.Decision, n int64) { counted.Add(n) },
			Access:  func(a *resp.Access) { logged.Add(a.Decision.Granted) },
		})
		const keys, rounds = 50, 6
		var all strings.Builder
		for round := range rounds {
			for key := range keys {
				all.WriteString(encode("CL.THROTTLE", fmt.Sprint("k", key), "4", "1", "3600"))
			}
			switch round {
			case 1:
				all.WriteString(encode("PING") + encode("CL.THROTTLE", "k0", "x", "1", "1") + encode("CL.THROTTLE", "k0", "4", "1", "3600", "0"))
			case 3:
				all.WriteString(encode("DEL", "k0"))
			}
		}
		c.send(all.String())
		for round := range rounds {
			for key := range keys {
				left := 4 - round
				want := fmt.Sprintf("*5|:0|:5|:%d|:-1|:%d|", left, 3600*(5-left))
				switch {
				case key == 0 && round > 3:
					want = fmt.Sprintf("*5|:0|:5|:%d|:-1|:%d|", left+4, 3600*(1-left))
				case left < 0:
					want = "*5|:1|:5|:0|:3600|:18000|"
				}
				if got := strings.ReplaceAll(c.reply(), "\r\n", "|"); got != want {
					t.Fatalf("round %d of key %d: got %s, want %s", round, key, got, want)
				}
			}
			switch round {
			case 1:
				if got := c.reply() + c.reply() + c.reply(); got != "+PONG\r\n-Cell error: Store error: Couldn't parse as integer: x\r\n*5\r\n:0\r\n:5\r\n:3\r\n:-1\r\n:7200\r\n" {
					t.Errorf("between them: %q", got)
				}
			case 3:
				if got := c.reply(); got != ":1\r\n" {
					t.Errorf("DEL: %q", got)
				}
			}
		}
		if n := calls.Load(); n > keys*rounds/2 {
			t.Errorf("%d calls of Redis for %d commands", n, keys*rounds)
		}
		c.do("PING") // what was read together is counted after it was answered
		if seen.Load() < keys*rounds || seen.Load() != counted.Load() || logged.Load() < keys*(rounds-1) {
			t.Errorf("%d decisions were seen, %d counted, %d logged as granted", seen.Load(), counted.Load(), logged.Load())
		}
	}, server)
}
