package resp_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/resp"
	"tidegate.dev/tidegate/store/memory"
)

// five sends CL.THROTTLE and returns the numbers, or the error.
func (c *client) five(args string) string {
	c.Helper()
	got := strings.ReplaceAll(strings.TrimSuffix(c.do("CL.THROTTLE "+args), "\r\n"), "\r\n:", " ")
	return strings.TrimPrefix(got, "*5 ")
}

// Every answer of redis-cell: limited, limit, remaining, retry, reset.
func TestThrottleAnswers(t *testing.T) {
	clock := newClock()
	c := onMemory(t, clock.now, nil)
	f := func(after time.Duration, args, want string) {
		t.Helper()
		clock.add(after)
		if got := c.five(args); got != want {
			t.Errorf("CL.THROTTLE %s: got %q, want %q", args, got, want)
		}
	}
	const ms = time.Millisecond
	// The example of its README: 30 a minute, 15 at once and one more.
	f(0, "user123 15 30 60 1", "0 16 15 -1 2")
	f(0, "user123 15 30 60 0", "0 16 15 -1 2")
	f(0, "user123 15 30 60", "0 16 14 -1 4")
	f(0, "user123 15 30 60 14", "0 16 0 -1 32")
	f(0, "user123 15 30 60", "1 16 0 2 32")
	f(0, "user123 15 30 60 0", "0 16 0 -1 32") // nobody is limited who asks for nothing
	f(0, "user123 15 30 60 17", "1 16 0 -1 32")
	f(0, "user123 15 30 60 16", "1 16 0 32 32")
	// Limited calls consume nothing.
	f(2*time.Second, "user123 15 30 60", "0 16 0 -1 32")
	f(32*time.Second, "user123 15 30 60 0", "0 16 16 -1 0")
	f(0, "user123 15 30 60 17", "1 16 16 -1 0")

	// Its own test: 1 a second, 5 at once.
	f(0, "foo 4 1 1 6", "1 5 5 -1 0")
	f(0, "foo 4 1 1", "0 5 4 -1 1")
	f(0, "foo 4 1 1", "0 5 3 -1 2")
	f(0, "foo 4 1 1", "0 5 2 -1 3")
	f(0, "foo 4 1 1", "0 5 1 -1 4")
	f(0, "foo 4 1 1", "0 5 0 -1 5")
	f(0, "foo 4 1 1", "1 5 0 1 5")
	f(3000*ms, "foo 4 1 1", "0 5 2 -1 3")
	f(100*ms, "foo 4 1 1", "0 5 1 -1 4") // 3.9 s
	f(900*ms, "foo 4 1 1", "0 5 1 -1 4")
	f(4000*ms, "foo 4 1 1", "0 5 4 -1 1")
	f(1500*ms, "foo 4 1 1", "0 5 4 -1 1")
	f(0, "foo 4 1 1 0", "0 5 4 -1 1")
	f(0, "foo 4 1 1 2", "0 5 2 -1 3")
	f(0, "foo 4 1 1 5", "1 5 2 3 3")

	// Seconds are rounded up, but for less than a millisecond.
	f(0, "round 0 1 2", "0 1 0 -1 2")
	f(ms/2, "round 0 1 2", "1 1 0 2 2")
	f(ms, "round 0 1 2", "1 1 0 2 2")
	f(998*ms, "round 0 1 2", "1 1 0 1 1") // 1.0005 s
	f(ms, "round 0 1 2", "1 1 0 1 1")
	f(999*ms, "round 0 1 2", "1 1 0 0 0") // 0.0005 s
	f(ms, "round 0 1 2", "0 1 0 -1 2")

	// One counter whatever the triple, and it keeps the time.
	f(0, "raw 9 10 1 10", "0 10 0 -1 1")
	f(0, "raw 9 10 60", "0 10 8 -1 7")
	f(0, "raw 9 10 60 8", "0 10 0 -1 55")
	f(0, "raw 9 10 1", "1 10 0 55 55")
	f(0, "raw 9 10 1 0", "1 10 0 54 55") // 54 s more than the burst holds
	f(0, "raw 0 1 1 2", "1 1 0 -1 55")
	f(55*time.Second, "raw 9 10 1 0", "0 10 10 -1 0")

	// A negative quantity gives back.
	f(0, "back 9 1 1 8", "0 10 2 -1 8")
	f(0, "back 9 1 1 -3", "0 10 5 -1 5")
	f(0, "back 9 1 1 0", "0 10 5 -1 5")
	f(0, "back 1 1 1 -1", "1 2 0 2 5") // 4 s are still owed, of 2 that it holds
	f(0, "back 9 1 1 -7", "0 10 12 -1 -2")
	f(0, "back 9 1 1 0", "0 10 10 -1 0")

	// Under a negative burst nothing fits.
	f(0, "none -1 1 1", "1 0 0 -1 0")
	f(0, "none -1 1 1 0", "0 0 0 -1 0")
	f(0, "none -5 1 1", "1 -4 0 -1 0")
	f(0, "none 2 1 1 2", "0 3 1 -1 2")
	f(0, "none -1 1 1", "1 0 0 -1 2")
	f(0, "none -1 1 1 0", "1 0 0 2 2")

	// Numbers as Rust reads them.
	f(0, "signs +4 +1 +1 +1", "0 5 4 -1 1")
	f(0, "signs 0004 1 1 0", "0 5 4 -1 1")
}

func TestThrottleErrors(t *testing.T) {
	c := onMemory(t, nil, nil)
	f := func(args, want string) {
		t.Helper()
		if got := c.five(args); got != want {
			t.Errorf("CL.THROTTLE %s: got %q, want %q", args, got, want)
		}
	}
	const usage = "-Cell error: Store error: Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]"
	for _, args := range []string{"", "key", "key 1", "key 1 1", "key 1 1 1 1 1"} {
		f(args, usage)
	}
	for i, word := range []string{"x", "1.5", "", "1e3", "0x10", "9223372036854775808", "-9223372036854775809", "+", "-", "--1", "1 "} {
		for at := range 4 {
			args := []string{"CL.THROTTLE", "key", "1", "1", "1", "1"}
			args[at+2] = word
			if got, want := c.call(args...), "-Cell error: Store error: Couldn't parse as integer: "+word+"\r\n"; got != want {
				t.Errorf("%d: %q: got %q, want %q", i, args, got, want)
			}
		}
	}
	const zero = "-Cell error: Store error: Zero rates are not supported"
	f("key 1 0 1", zero)
	f("key 1 1 0", zero)
	f("key 1 0 0 0", zero)
	f("key 1 x 0", "-Cell error: Store error: Couldn't parse as integer: x")
	f("key 1 -1 1", "-ERR -1 per 1 seconds: a rate cannot be negative")
	f("key 1 1 -1", "-ERR 1 per -1 seconds: a rate cannot be negative")
	f("key 1 1 9223372036854775807", "-ERR a period of 9223372036854775807 seconds is too long")
	f("key 1 1000001 1", "-ERR 1000001 per 1 seconds is more than 1000000 a second for one key: count in larger units")
	f("key 1 9223372036854775807 1", "-ERR 9223372036854775807 per 1 seconds is more than 1000000 a second for one key: count in larger units")
	f("key 1 1 1209601", "-ERR 1 per 1209601 seconds is slower than one in 14 days")
	f("key 268435455 1 1", "-ERR a burst of 268435455: at most 268435454 can be counted")
	// What is quoted stays in its line.
	if got := c.call("CL.THROTTLE", "key", "1\r\n+OK", "1", "1"); got != "-Cell error: Store error: Couldn't parse as integer: 1  +OK\r\n" {
		t.Errorf("got %q", got)
	}
	if got := c.call("CL.THROTTLE", "key", strings.Repeat("x", 60000), "1", "1"); len(got) > 600 {
		t.Errorf("an error of %d bytes", len(got))
	}
	f("key 268435454 1000000 1 268435455", "0 268435455 0 -1 269")
	f("months 20 27 32000000", "0 21 20 -1 1185186") // a period above what a limit can have
	f("months 25 27 32000000", "-ERR limit \"cl.throttle\": burst 26 at 26/8559h40m14.814815s takes longer than 8784h0m0s to refill")
	f("much 0 1099511627776 1099511627776", "0 1 0 -1 1")
}

// cell is redis-cell by its definition, in whole nanoseconds.
type cell struct{ tat map[string]int64 }

func (c *cell) throttle(now int64, key string, burst, count, period, quantity int64) string {
	em := period * 1e9 / count
	full, ask := em*(burst+1), em*quantity
	tat, ok := c.tat[key]
	if !ok {
		tat = now
	}
	next := max(now, tat) + ask
	retry, limited, ttl := int64(-1e9), 0, next-now
	if over := next - full - now; over > 0 {
		if limited = 1; ask <= full {
			retry = over
		}
		ttl = tat - now
	} else {
		c.tat[key] = next
	}
	var left int64
	if full-ttl > -em {
		left = (full - ttl) / em
	}
	up := func(ns int64) int64 {
		s := ns / 1e9
		if ns%1e9/1e6 > 0 {
			s++
		}
		return s
	}
	return fmt.Sprint(limited, burst+1, left, up(retry), up(ttl))
}

// Random histories are answered as redis-cell would, also where triples take turns on a key
// and at rates above a thousand a second, of which redis-cell itself loses the fractions.
func TestThrottleLikeRedisCell(t *testing.T) {
	clock := newClock()
	c := onMemory(t, clock.now, nil)
	r := rand.New(rand.NewPCG(1, 2))
	want := cell{map[string]int64{}}
	start := clock.now()
	// Of all these an event takes whole nanoseconds, and whole ticks of a store.
	rates := [][2]int64{{1, 1}, {30, 60}, {10, 60}, {1, 60}, {5, 1}, {100, 1}, {1000, 1}, {8000, 1}, {250000, 2}, {1000000, 1}, {1, 86400}, {400, 3600}}
	for i := range 20000 {
		if r.IntN(3) == 0 {
			clock.add(time.Duration(r.Int64N(1<<(10+r.IntN(26)))) / 125 * 125) // whole ticks
		}
		rate := rates[r.IntN(len(rates))]
		burst := r.Int64N(40) - 1
		quantity := max(-3, r.Int64N(12)-5)
		key := "key" + strconv.Itoa(i/40)
		args := fmt.Sprint(key, " ", burst, " ", rate[0], " ", rate[1], " ", quantity)
		now := int64(clock.now().Sub(start))
		if want.tat[key] < now { // its keys expire
			delete(want.tat, key)
		}
		expected := want.throttle(now, key, burst, rate[0], rate[1], quantity)
		if got := c.five(args); got != expected {
			t.Fatalf("%d, at %d ns: CL.THROTTLE %s: got %q, want %q", i, now, args, got, expected)
		}
	}
}

// At any rate a key gets its burst and what it regains, to the event.
func TestThrottleRates(t *testing.T) {
	clock := newClock()
	c := onMemory(t, clock.now, nil)
	for _, rate := range []int64{1, 7, 999, 1000, 1001, 2500, 30_000, 333_333, 999_999, 1_000_000} {
		key, passed := fmt.Sprint("rate", rate), 0
		f := func(want int) {
			t.Helper()
			for passed = 0; strings.HasPrefix(c.five(fmt.Sprintf("%s 9 %d 1", key, rate)), "0"); passed++ {
			}
			if passed != want {
				t.Errorf("%d a second: %d passed, want %d", rate, passed, want)
			}
		}
		f(10)
		clock.add(time.Duration(4*int64(time.Second)/rate) + time.Microsecond/2)
		f(4)
	}
}

// far is a store without a way for one check.
type far struct {
	tidegate.Store
	tidegate.Resetter
}

// Metrics, logs and lists are told of what clients are told: a look is no request, and under a
// negative burst nothing passes.
func TestThrottleIsObservedAsItIsAnswered(t *testing.T) {
	store := memory.New()
	for name, asked := range map[string]tidegate.Store{"near": store, "far": far{store, store}} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var counted, seen, logged []string
			note := func(to *[]string, d *tidegate.Decision, n int64) {
				mu.Lock()
				defer mu.Unlock()
				for range n {
					*to = append(*to, fmt.Sprint(d.OK, d.Granted))
				}
			}
			_, c := serve(t, resp.Options{
				Store:   asked,
				Counted: func(d *tidegate.Decision, n int64) { note(&counted, d, n) },
				Observe: func(_ *tidegate.Request, _ []tidegate.Check, d tidegate.Decision) { note(&seen, &d, 1) },
				Access:  func(a *resp.Access) { note(&logged, &a.Decision, 1) },
			})
			const passed, refused = "true 1", "false 0"
			f := func(args, answer string, told ...string) {
				t.Helper()
				mu.Lock()
				counted, seen, logged = nil, nil, nil
				mu.Unlock()
				if got := c.five(name + args); !strings.HasPrefix(got, answer) {
					t.Errorf("%s: %s, want %s", args, got, answer)
				}
				c.do("PING") // what is told, is told before this is answered
				mu.Lock()
				defer mu.Unlock()
				for _, got := range [][]string{counted, seen, logged} {
					if strings.Join(got, " ") != strings.Join(told, " ") {
						t.Errorf("%s: told %q, want %q", args, got, told)
					}
				}
			}
			f(" 1 1 3600 0", "0 2 2")
			f(" 1 1 3600", "0 2 1", passed)
			f(" 1 1 3600 1", "0 2 0", passed)
			f(" 1 1 3600", "1 2 0", refused)
			f(" 1 1 3600 3", "1 2 0 -1", refused)
			f(" 1 1 3600 0", "0 2 0")
			f(" 0 1 3600 0", "1 1 0")
			f(" 1 1 3600 -1", "0 2 1")
			f(" 1 1 3600 -9", "0 2")
			f(" -1 1 3600", "1 0 0 -1", refused)
			f(" -5 1 3600 7", "1 -4 0 -1", refused)
			f(" -1 1 3600 0", "0 0 0")
			f(" 1 0 3600", "-Cell error")
			f(" 1 1 3600 x", "-Cell error")
		})
	}
}

func TestDel(t *testing.T) {
	c := onMemory(t, nil, nil)
	c.five("a 1 1 3600 2")
	c.five("b 1 60 3600 2")
	c.want("DEL a b c a", ":2|")
	c.want("DEL a", ":0|")
	c.want("UNLINK b", ":0|")
	for _, key := range "ab" {
		if got := c.five(string(key) + " 1 1 3600 0"); got != "0 2 2 -1 0" {
			t.Errorf("after DEL: %s", got)
		}
	}
}

// A key is bytes of any length, and different ones never meet.
func TestThrottleKeys(t *testing.T) {
	c := onMemory(t, nil, nil)
	keys := []string{"", " ", "\x00", "\r\n", "\xff", "=", "{a}"}
	for _, n := range []int{1, 62, 63, 64, 65, 66, 1000, resp.MaxBulk} {
		long := strings.Repeat("k", n)
		keys = append(keys, long, long[:n-1]+"j")
	}
	for i, want := range []string{":0", ":1"} {
		for _, k := range keys {
			if got := c.call("cl.throttle", k, "0", "1", "3600"); !strings.HasPrefix(got, "*5\r\n"+want) {
				t.Errorf("key %.20q, round %d: %q", k, i, got)
			}
		}
	}
}
