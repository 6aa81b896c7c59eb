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

// garbler is a proxy before Redis that changes what Redis says.
type garbler struct {
	net.Listener
	target string
	garble atomic.Pointer[func([]byte, *rand.Rand) []byte] // nil: not at all
	seed   atomic.Uint64
	extra  chan []byte // said on the next connection that is quiet
}

func newGarbler(t *testing.T, target string) *garbler {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &garbler{Listener: l, target: target, extra: make(chan []byte)}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go g.serve(c)
		}
	}()
	return g
}

func (g *garbler) serve(c net.Conn) {
	defer c.Close()
	up, err := net.Dial("tcp", g.target)
	if err != nil {
		return
	}
	defer up.Close()
	done := make(chan struct{})
	defer close(done)
	go func() {
		_, _ = io.Copy(up, c)
		_ = up.Close()
	}()
	go func() {
		for {
			select {
			case b := <-g.extra:
				_, _ = c.Write(b)
			case <-done:
				return
			}
		}
	}()
	r := rand.New(rand.NewPCG(g.seed.Add(1), 7))
	b := make([]byte, 4096)
	for {
		n, err := up.Read(b)
		if err != nil {
			return
		}
		say := b[:n]
		if f := g.garble.Load(); f != nil {
			say = (*f)(bytes.Clone(say), r)
		}
		if _, err := c.Write(say); err != nil {
			return
		}
	}
}

// garblings are ways to change a piece of what a server says, one time in a few.
var garblings = map[string]func(b []byte, r *rand.Rand) []byte{
	"flipped": func(b []byte, r *rand.Rand) []byte {
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		return b
	},
	"truncated": func(b []byte, r *rand.Rand) []byte { return b[:r.IntN(len(b))] },
	"cut out": func(b []byte, r *rand.Rand) []byte {
		i := r.IntN(len(b))
		return append(b[:i:i], b[min(len(b), i+1+r.IntN(9)):]...)
	},
	"doubled":        func(b []byte, _ *rand.Rand) []byte { return append(b[:len(b):len(b)], b...) },
	"surplus":        func(b []byte, _ *rand.Rand) []byte { return append([]byte("+OK\r\n"), b...) },
	"surplus behind": func(b []byte, _ *rand.Rand) []byte { return append(b[:len(b):len(b)], "+OK\r\n"...) },
	"random": func(b []byte, r *rand.Rand) []byte {
		return insert(b, r, fmt.Sprintf("%c%d\r\n", "+-:$*%~>_#,!=(|;.?"[r.IntN(18)], r.Int64()))
	},
	"huge":       func(b []byte, r *rand.Rand) []byte { return insert(b, r, "$999999999999\r\n") },
	"huge array": func(b []byte, r *rand.Rand) []byte { return insert(b, r, "*999999999\r\n") },
	"less":       func(b []byte, r *rand.Rand) []byte { return insert(b, r, "*-7\r\n%-1\r\n$-9\r\n") },
	"nested":     func(b []byte, r *rand.Rand) []byte { return insert(b, r, strings.Repeat("*1\r\n", 1<<16)) },
	"streamed":   func(b []byte, r *rand.Rand) []byte { return insert(b, r, "$?\r\n;-4\r\n") },
	"pushed":     func(b []byte, r *rand.Rand) []byte { return insert(b, r, ">3\r\n+subscribe\r\n+a\r\n:1\r\n") },
	"swapped": func(b []byte, r *rand.Rand) []byte {
		all := bytes.SplitAfter(b, []byte("\r\n$"))
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		return bytes.Join(all, nil)
	},
	"moved": func(b []byte, r *rand.Rand) []byte { return insert(b, r, "-MOVED\r\n-ASK\r\n-QUEUED\r\n") },
}

// insert puts text before b, or somewhere into it.
func insert(b []byte, r *rand.Rand, text string) []byte {
	i := 0
	if r.IntN(2) == 0 {
		i = r.IntN(len(b))
	}
	return append(append(b[:i:i], text...), b[i:]...)
}

// TestGarbledReplies has a real Redis garbled in every way, for every algorithm. The process
// lives, what is granted is no more than the limit, what is told is possible, and when
// the garbling ends all is well. Without checked connections the client's own goroutine
// panics, or it makes room for a terabyte.
func TestGarbledReplies(t *testing.T) {
	server := testdep.Redis(t)
	for name, garble := range garblings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGarbler(t, server.Addr)
			s := openTest(t, Config{URL: "redis://" + g.Addr().String() + "?prefix=" + strings.ReplaceAll(name, " ", "-")})
			seldom := func(b []byte, r *rand.Rand) []byte {
				if len(b) == 0 || r.IntN(4) > 0 {
					return b
				}
				return garble(b, r)
			}
			for _, alg := range []tidegate.Algorithm{
				tidegate.TokenBucket, tidegate.LeakyBucket, tidegate.FixedWindow, tidegate.Quota,
				tidegate.SlidingWindow, tidegate.SubWindows, tidegate.SlidingLog, tidegate.Concurrency,
			} {
				g.garble.Store(&seldom)
				held := tryGarbled(t, s, alg)
				g.garble.Store(nil)
				eventually(t, func() error {
					_, err := s.Take(t.Context(), []tidegate.Check{held}, 1)
					return err
				})
			}
		})
	}
}

// tryGarbled asks for more than there is, from many at once and in every way.
func tryGarbled(t *testing.T, s *Store, alg tidegate.Algorithm) tidegate.Check {
	spec := tidegate.Spec{Name: "garbled", Algorithm: alg, Events: 50, Period: 24 * time.Hour}
	if alg == tidegate.Quota {
		spec.Period, spec.Calendar = 0, tidegate.Month
	}
	limit := tidegate.MustLimit(spec)
	check := tidegate.Check{Key: "ann", Limit: limit, Cost: 1}
	var granted atomic.Int64
	var all sync.WaitGroup
	note := func(d tidegate.Decision) {
		granted.Add(d.Granted)
		longest := 2 * limit.Period // of what the law can give
		if alg == tidegate.Quota {
			longest = 32 * 24 * time.Hour
		}
		if d.Remaining < 0 || d.Remaining > limit.Capacity() || d.RetryAfter < 0 || d.RetryAfter > longest || d.ResetAfter > longest || d.Wait > longest {
			t.Errorf("%s: %+v cannot be", alg, d)
		}
	}
	for i := range 8 {
		all.Go(func() {
			for j := range 15 {
				ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
				checks := []tidegate.Check{check}
				switch way := (i + j) % 4; {
				case way == 0 && alg != tidegate.Concurrency:
					asks := []chain.Ask{{Checks: checks, Copies: 1}, {Checks: []tidegate.Check{check}, Copies: 2}}
					if err := in(s).TakeBatch(ctx, asks); err != nil {
						t.Error(err)
					}
					for _, a := range asks {
						if a.Err == nil {
							note(a.Granted)
						}
					}
				case way == 1:
					if d, _, err := s.takeWithRest(ctx, checks, takeParams{copies: 3}); err == nil {
						note(d)
					}
				case way == 2:
					peek := []tidegate.Check{{Key: "ann", Limit: limit}}
					if d, err := s.Take(ctx, peek, 1); err == nil {
						d.Granted = 0
						note(d)
					}
					_, _ = in(s).Beat(ctx, chain.Heartbeat{ID: "node", TTL: time.Second, About: "{}"})
					// Others leave meanwhile.
					if all, err := in(s).Entries(ctx); err == nil && (len(all) > 1 || len(all) == 1 && (all[0].ID != "node" || all[0].About != "{}" && all[0].About != "")) {
						t.Errorf("garbled entries: %+v", all)
					}
				default:
					if d, err := s.Take(ctx, checks, 1); err == nil {
						note(d)
					}
					if j%3 == 0 {
						aside(ctx, s, limit, note)
					}
				}
				cancel()
			}
		})
	}
	all.Wait()
	if n := granted.Load(); n > limit.Capacity() {
		t.Errorf("%s: %d granted of %d", alg, n, limit.Capacity())
	}
	return tidegate.Check{Key: "bob", Limit: limit, Cost: 1}
}

// aside does with another key what gets replies of other kinds.
func aside(ctx context.Context, s *Store, limit *tidegate.Limit, note func(tidegate.Decision)) {
	checks := []tidegate.Check{{Key: "eve", Limit: limit, Cost: 1}}
	sane := func(d tidegate.Decision, err error) {
		if d.Granted = 0; err == nil {
			note(d)
		}
	}
	d, err := s.Take(ctx, checks, 1)
	sane(d, err)
	if limit.Algorithm == tidegate.Concurrency {
		_ = s.Renew(ctx, d.Receipt, checks)
	} else {
		d, err := s.Reserve(ctx, checks, time.Minute)
		sane(d, err)
		_ = s.Settle(ctx, d.Receipt, 3)
	}
	checks[0].Cost = -1
	_ = s.Adjust(ctx, d.Receipt, checks)
	n := 0
	for range s.Keys(ctx, limit.Name) {
		if n++; n > 10_000 {
			panic("there are not so many keys")
		}
	}
	_ = s.Reset(ctx, checks)
	_ = s.Ping(ctx)
	_ = in(s).Leave(ctx, "node")
}

// eventually wants try to work in a while.
func eventually(t *testing.T, try func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = try(); err == nil {
			return
		}
	}
	t.Errorf("it is not well again: %v", err)
}

// TestSurplusReply says five bytes too many on a connection that is quiet, over and over.
func TestSurplusReply(t *testing.T) {
	server := testdep.Redis(t)
	g := newGarbler(t, server.Addr)
	s := openTest(t, Config{URL: "redis://" + g.Addr().String()})
	for i := range 20 {
		eventually(t, func() error { return s.Ping(t.Context()) })
		for _, serverError := range []string{"+OK\r\n", "-ERR max number of clients reached\r\n", "$3\r\nabc\r\n", "*0\r\n", ">0\r\n"} {
			select {
			case g.extra <- []byte(serverError):
			case <-time.After(time.Millisecond * time.Duration(10+i)):
			}
		}
	}
	eventually(t, func() error { return s.Ping(t.Context()) })
}

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
	f("numbers", -2, 1e15)
	f("of which", 2, 1e15, 1, 98, 0, 0, 0, 0)
	f("101 left", 2, 1e15, 2, 101, 0, 0, 0, 0)
	f("-1 left", 2, 1e15, 2, -1, 0, 0, 0, 0)
	f("as good as new", 2, 1e15, 2, 98, 3*year, 0, 0, 0)
	f("as good as new", 2, 1e15, 2, 98, -5, 0, 0, 0)
	f(" in ", 0, 1e15, 0, 0, 0, 0, 3*year, 0)
	f("the next", 1, 1e15, 1, 0, 36000000, 0, 0, 0, 3*year, 0)
	f("numbers", 2, 1e15, 2, 98)
	f("numbers", 2, 1e15, 2, 98, 0, 0, 0, 0, 0)
	f("numbers", 2, -1, 2, 98, 0, 0, 0, 0)
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

// TestGarbledTopology garbles what Sentinels and a node of a cluster say: who is master, who
// has which slot, and the news that Sentinels publish.
func TestGarbledTopology(t *testing.T) {
	_, sentinels := testdep.RedisSentinel(t, 1)
	nodes := testdep.RedisCluster(t, 3, 0)
	for name, garble := range garblings {
		seldom := func(b []byte, r *rand.Rand) []byte {
			if len(b) == 0 || r.IntN(3) > 0 {
				return b
			}
			return garble(b, r)
		}
		for kind, target := range map[string]string{"redis-sentinel://%s/mymaster": sentinels[0].Addr, "redis-cluster://%s": nodes[0].Addr} {
			t.Run(name+" "+kind[:10], func(t *testing.T) {
				t.Parallel()
				g := newGarbler(t, target)
				g.garble.Store(&seldom)
				for range 6 { // each asks for the topology anew
					s := openTest(t, Config{URL: fmt.Sprintf(kind, g.Addr())})
					for i := range 5 {
						ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
						_, _ = s.Take(ctx, []tidegate.Check{{Key: fmt.Sprint(i), Limit: one100.Limit, Cost: 1}}, 1)
						cancel()
					}
					_ = s.Close()
				}
				g.garble.Store(nil)
				s := openTest(t, Config{URL: fmt.Sprintf(kind, g.Addr())})
				eventually(t, func() error {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					_, err := s.Take(ctx, []tidegate.Check{one100}, 1)
					return err
				})
			})
		}
	}
}
