package resp

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/desk"
	"tidegate.dev/tidegate/store/memory"
)

// loop is a connection that sends the same commands again and again, and counts replies.
type loop struct {
	net.Conn
	in     string
	rounds int
	wrote  int
}

func (l *loop) Read(b []byte) (int, error) {
	if l.rounds--; l.rounds < 0 {
		return 0, io.EOF
	}
	return copy(b, l.in), nil
}

func (l *loop) Write(b []byte) (int, error) {
	l.wrote++
	return len(b), nil
}
func (l *loop) Close() error                     { return nil }
func (l *loop) SetReadDeadline(time.Time) error  { return nil }
func (l *loop) SetWriteDeadline(time.Time) error { return nil }
func (l *loop) RemoteAddr() net.Addr             { return &net.TCPAddr{} }

// throttles are so many commands, about different keys and rates.
func throttles(n int) string {
	var b strings.Builder
	for i := range n {
		key := fmt.Sprint("key:", 100000+i)
		fmt.Fprintf(&b, "*5\r\n$11\r\nCL.THROTTLE\r\n$%d\r\n%s\r\n$3\r\n100\r\n$4\r\n1000\r\n$2\r\n%d\r\n", len(key), key, 60+i%3)
	}
	return b.String()
}

func ready(s *Server, l *loop) *conn {
	s.done.Add(1)
	s.open.Add(1)
	c := newConn(s, l)
	c.in.buf = make([]byte, pipeBuffer)
	return c
}

// A decision makes no garbage, with whoever watches it; all commands of a read are answered
// by one write.
func TestHotPath(t *testing.T) {
	seen, counted := 0, int64(0)
	s := New(Options{
		Store: memory.New(), Users: []User{{Name: "ann", Password: "p", Prefix: "ann:"}},
		Observe: func(_ *tidegate.Request, checks []tidegate.Check, d tidegate.Decision) {
			if seen++; checks[0].Limit.Terms.Rule != RuleName || d.Limit == nil {
				t.Errorf("%+v %+v", checks, d)
			}
		},
		Counted: func(d *tidegate.Decision, n int64) {
			if counted += n; d.Limit == nil || n == 0 {
				t.Errorf("%d of %+v", n, d)
			}
		},
	})
	l := &loop{in: throttles(64), rounds: 1}
	c := ready(s, l)
	c.account = c.accounts.all["ann"]
	if !c.read() {
		t.Fatal("nothing to read")
	}
	end := c.in.w
	f := func() {
		c.in.r, c.in.w = 0, end
		_, err := c.batch()
		c.count()
		if err != nil || !c.flush() {
			t.Error(err)
		}
	}
	if n := testing.AllocsPerRun(100, f); n != 0 {
		t.Errorf("%v allocations for 64 commands", n)
	}
	if l.wrote != 101 || seen != 101*64 || counted != 101*64 || s.rates.all[0].next.Load() > 100 {
		t.Errorf("%d writes, %d decisions", l.wrote, seen)
	}
}

func BenchmarkThrottle(b *testing.B) {
	for _, n := range []int{1, 16, 64} {
		b.Run(fmt.Sprint("pipelined=", n), func(b *testing.B) {
			s := New(Options{Store: memory.New()})
			c := ready(s, &loop{in: throttles(n), rounds: (b.N + n - 1) / n})
			b.ReportAllocs()
			b.ResetTimer()
			c.serve()
		})
	}
}

// A check of rules copies its words and makes no other garbage.
func TestHotPathOfRules(t *testing.T) {
	store := memory.New()
	gate := tidegate.NewGate(held{{Key: "k", Limit: tidegate.MustLimit(tidegate.Spec{Events: 1000, Period: time.Second, Algorithm: tidegate.TokenBucket}), Cost: 1}}, store)
	s := New(Options{Desk: desk.New(gate)})
	l := &loop{in: "tg.check PATH /posts?page=2 METHOD POST HOST api.example IP 203.0.113.7 AS user 42 COST 3\r\n", rounds: 1}
	c := ready(s, l)
	if !c.read() {
		t.Fatal("nothing to read")
	}
	line, end := []byte(l.in), c.in.w
	if n := testing.AllocsPerRun(100, func() {
		copy(c.in.buf, line) // words are written over it
		c.in.r, c.in.w = 0, end
		if _, err := c.batch(); err != nil || !c.flush() {
			t.Error(err)
		}
		c.forget()
	}); n > 1 {
		t.Errorf("%v allocations", n)
	}
}
