package redis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/redis/internal/rediswire"
)

// TestFakeServers has all kinds of connections talk to servers that answer anything.
func TestFakeServers(t *testing.T) {
	says := []string{
		"+OK\r\n", "-ERR no\r\n", ":1\r\n", "$-1\r\n", "$0\r\n\r\n", "*0\r\n", "*-1\r\n", "_\r\n", "%0\r\n", "*1\r\n*0\r\n",
		"*1\r\n$6\r\nmaster\r\n", "*2\r\n$9\r\n127.0.0.1\r\n$1\r\n1\r\n", "*1\r\n$1\r\nx\r\n", "-MOVED\r\n", "-MOVED 1 127.0.0.1:1\r\n",
		"-LOADING\r\n", "-NOAUTH\r\n", "+QUEUED\r\n", "+PONG\r\n", ">3\r\n+subscribe\r\n+a\r\n:1\r\n", ">3\r\n+message\r\n++switch-master\r\n+x\r\n",
		">3\r\n+message\r\n++sentinel\r\n+x\r\n", "%2\r\n+proto\r\n:3\r\n+version\r\n+7.0.0\r\n", "%2\r\n+proto\r\n:2\r\n+version\r\n+6\r\n",
		"-ERR unknown command 'HELLO'\r\n", "*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:1\r\n",
		"*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:1\r\n", "*1\r\n*4\r\n+ip\r\n+127.0.0.1\r\n+port\r\n+1\r\n",
		"HTTP/1.1 400\r\n", "$999999999999\r\n", "*2147483647\r\n", "",
	}
	for _, kind := range []string{"redis://%s", "redis-sentinel://%s/mymaster", "redis-cluster://%s"} {
		for seed := range uint64(12) {
			t.Run(fmt.Sprintf("%.10s %d", kind, seed), func(t *testing.T) {
				t.Parallel()
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = l.Close() })
				go fake(l, says, seed)
				s := openTest(t, Config{URL: fmt.Sprintf(kind, l.Addr())})
				for range 25 {
					ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
					if d, err := s.Take(ctx, []tidegate.Check{one100}, 1); err == nil {
						t.Errorf("%+v of a server that counts nothing", d)
					}
					if err := s.Settle(ctx, tidegate.Receipt{Handle: tidegate.NewHandle()}, 1); err == nil {
						t.Error("settled by a server that has no records")
					}
					_, _ = in(s).Beat(ctx, chain.Heartbeat{ID: "me", TTL: time.Second})
					_, _ = in(s).Entries(ctx)
					for range s.Keys(ctx, "") {
						break
					}
					cancel()
				}
			})
		}
	}
}

// fake answers each piece that it is sent with some of what it can say. At first it says
// what a server does, mostly.
func fake(l net.Listener, says []string, seed uint64) {
	for n := uint64(0); ; n++ {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			r := rand.New(rand.NewPCG(seed, n))
			b := make([]byte, 1<<16)
			for {
				k, err := c.Read(b)
				if err != nil {
					return
				}
				commands := bytes.Count(b[:k], []byte("*"))
				if bytes.Contains(b[:k], []byte("HELLO")) && r.IntN(8) > 0 {
					_, _ = c.Write([]byte("%2\r\n+proto\r\n:3\r\n+version\r\n+" + []string{"6", "7"}[r.IntN(2)] + ".0.0\r\n"))
					commands--
				}
				for range commands + r.IntN(3) - r.IntN(2) {
					if _, err := io.WriteString(c, says[r.IntN(len(says))]); err != nil {
						return
					}
				}
			}
		}()
	}
}

// TestInvalidReplies changes one number at a time of replies that are right, with the sum
// made right again: what the law cannot give is a failed call.
func TestInvalidReplies(t *testing.T) {
	limit := bucket("api", "user", 100, time.Hour)
	s := &Store{}
	lim, err := s.compile(limit)
	if err != nil {
		t.Fatal(err)
	}
	f := func(want string, numbers ...int64) {
		t.Helper()
		pending := []*pendingCheck{{lim: lim, cost: 1}}
		_, err := reply(numbers).grant(pending, takeParams{copies: 2})
		switch {
		case want == "" && err != nil:
			t.Errorf("%d: %v", numbers, err)
		case want != "" && (!errors.Is(err, errInvalidReply) || !strings.Contains(err.Error(), want)):
			t.Errorf("%d: %v, want %q", numbers, err, want)
		}
	}
	const year = 366 * 24 * 3600 * 1000000
	f("", 2, 1e15, 2, 98, 36000000, 0, 0, 0)
	f("", 1, 1e15, 1, 0, 36000000, 0, 0, 0, 36000000, 0)
	f("", 0, 1e15, 0, 0, 36000000, 0, 5, 0)
	f("3 copies of 2", 3, 1e15, 3, 98, 0, 0, 0, 0)
	f("2 numbers about 1 checks: want 8", -2, 1e15)
	f("of which", 2, 1e15, 1, 98, 0, 0, 0, 0)
	f("101 left", 2, 1e15, 2, 101, 0, 0, 0, 0)
	f("-1 left", 2, 1e15, 2, -1, 0, 0, 0, 0)
	f("", 2, 1e15, 2, 98, 3*year, 0, 0, 0) // a debt of twice the longest, after the clock was set back by that
	f("as good as new", 2, 1e15, 2, 98, 3*year+1e6, 0, 0, 0)
	f("as good as new in -5 µs", 2, 1e15, 2, 98, -5, 0, 0, 0)
	f("admit it in", 0, 1e15, 0, 0, 0, 0, 3*year+61e6, 0) // less than a minute more for leases
	f("the next", 1, 1e15, 1, 0, 36000000, 0, 0, 0, 3*year+61e6, 0)
	f("numbers", 2)
	f("4 numbers about 1 checks: want 8", 2, 1e15, 2, 98)
	f("numbers", 2, 1e15, 2, 98, 0, 0, 0, 0, 0)
	f("decided at -1", 2, -1, 2, 98, 0, 0, 0, 0)
	f("by no limit", 0, 1e15, 1, 98, 0, 0, 0, 0)
	if _, err := parseReply("12345678", 1); !errors.Is(err, errInvalidReply) {
		t.Errorf("%v, want nonsense", err)
	}
	var v *rediswire.Violation
	if errors.As(invalidReply("x"), &v) {
		t.Error("nonsense is not about the connection")
	}
}

// TestMaxClients connects again and again to a Redis that turns everybody away: it says so
// at once, before or after the client has introduced itself, and hangs up.
func TestMaxClients(t *testing.T) {
	server := testdep.Redis(t)
	held, err := net.Dial("tcp", server.Addr) // a place of our own, to let the others in again
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	say := func(command string) {
		t.Helper()
		if _, err := fmt.Fprintf(held, "%s\r\n", command); err != nil {
			t.Fatal(err)
		}
		if _, err := held.Read(make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
	}
	say("CONFIG SET maxclients 1")
	say("CLIENT KILL TYPE normal")
	stores := make([]*Store, 6)
	for i := range stores {
		stores[i] = openTest(t, Config{URL: "redis://" + server.Addr})
	}
	var reported atomic.Int64
	var all sync.WaitGroup
	for _, s := range stores {
		all.Go(func() {
			for range 40 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				d, err := s.Take(ctx, []tidegate.Check{one100}, 1)
				cancel()
				if err == nil {
					t.Errorf("%+v of a server that takes no connection", d)
				} else if strings.Contains(err.Error(), "max number of clients") && strings.Contains(err.Error(), "maxclients") {
					reported.Add(1)
				}
			}
		})
	}
	all.Wait()
	if reported.Load() == 0 {
		t.Error("nobody was told that there are too many clients")
	}
	say("CONFIG SET maxclients 100")
	for _, s := range stores {
		eventually(t, func() error { return s.Ping(t.Context()) })
	}
}
