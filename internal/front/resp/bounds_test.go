package resp_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/front/resp"
	"tidegate.dev/tidegate/store/memory"
)

// What is not RESP, or too much of it, is told so and disconnected.
func TestProtocolErrors(t *testing.T) {
	long := strings.Repeat("x", resp.MaxCommand)
	store := memory.New()
	s, _ := serve(t, resp.Options{Store: store})
	addr := listen(t, s)
	f := func(sent, want string) {
		t.Helper()
		c := dial(t, addr)
		go func() { _, _ = io.WriteString(c, sent) }() // it may be disconnected before all was sent
		if got := c.gone(); got != want {
			t.Errorf("%.40q: got %q, want %q", sent, got, want)
		}
	}
	f("*x\r\n", "-ERR Protocol error: invalid multibulk length\r\n")
	f("*\r\n", "-ERR Protocol error: invalid multibulk length\r\n")
	f("*1x\r\n", "-ERR Protocol error: invalid multibulk length\r\n")
	f("*1\rx", "-ERR Protocol error: invalid multibulk length\r\n")
	f("*1025\r\n", "-ERR Protocol error: invalid multibulk length\r\n")
	f("*99999999999\r\n", "-ERR Protocol error: invalid multibulk length\r\n")
	f("*"+strings.Repeat("0", 100), "-ERR Protocol error: invalid multibulk length\r\n")
	f("*1\r\nPING\r\n", "-ERR Protocol error: expected '$', got 'P'\r\n")
	f("*1\r\n\r\n", "-ERR Protocol error: expected '$', got '?'\r\n")
	f("*1\r\n$-1\r\n", "-ERR Protocol error: invalid bulk length\r\n")
	f("*1\r\n$x\r\n", "-ERR Protocol error: invalid bulk length\r\n")
	f("*1\r\n$65537\r\n", "-ERR Protocol error: invalid bulk length\r\n")
	f("*1\r\n$99999999999999999999\r\n", "-ERR Protocol error: invalid bulk length\r\n")
	f("*1\r\n$4\r\nPINGS\r\n", "-ERR Protocol error: expected CRLF after a bulk string\r\n")
	f("*5\r\n"+strings.Repeat("$65000\r\n"+long[:65000]+"\r\n", 5), "-ERR Protocol error: too big command\r\n")
	f(long, "-ERR Protocol error: too big inline request\r\n")
	f(long+"\n", "-ERR Protocol error: too big inline request\r\n")
	f(long[1:]+"\nQUIT\n", "-ERR unknown command '"+long[:128]+"', with args beginning with: \r\n+OK\r\n")
	f("ECHO \"x\n", "-ERR Protocol error: unbalanced quotes in request\r\n")
	f("ECHO \"x\"y\n", "-ERR Protocol error: unbalanced quotes in request\r\n")
	f(strings.Repeat("a ", 1025)+"\n", "-ERR Protocol error: too many arguments in request\r\n")
	f("POST / HTTP/1.1\r\nHost: x\r\n\r\n", "")
	f("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "-ERR unknown command 'GET', with args beginning with: '/' 'HTTP/1.1' \r\n")
	f("PING\r\n*x\r\n", "+PONG\r\n-ERR Protocol error: invalid multibulk length\r\n")
	f("QUIT\r\nPING\r\n", "+OK\r\n")
	if n := s.Stats().Protocol; n != 23 {
		t.Errorf("%d connections are counted as broken, want 23", n)
	}
}

// The largest that is allowed works, also in small pieces.
func TestLargestCommand(t *testing.T) {
	store := memory.New()
	_, c := serve(t, resp.Options{Store: store})
	big := strings.Repeat("x", resp.MaxBulk)
	if got := c.call("ECHO", big); len(got) != resp.MaxBulk+10 {
		t.Errorf("ECHO of the largest: %d bytes", len(got))
	}
	args := []string{"DEL"}
	for len(args) < resp.MaxArgs {
		args = append(args, fmt.Sprint("key", len(args)))
	}
	c.want("PING", "+PONG|")
	all := encode(args...)
	for len(all) > 0 {
		n := min(len(all), 7)
		c.send(all[:n])
		all = all[n:]
	}
	if got := c.reply(); got != ":0\r\n" {
		t.Errorf("DEL of %d keys: %q", len(args)-1, got)
	}
	three := encode("ECHO", big[:60000]) + encode("PING") + encode("ECHO", big[:50000])
	c.send(three + three + three)
	for range 3 {
		if got := len(c.reply()) + len(c.reply()) + len(c.reply()); got != 60010+7+50010 {
			t.Errorf("%d bytes", got)
		}
	}
}

// Before AUTH a client can send nothing that is worth remembering.
func TestBeforeAuth(t *testing.T) {
	store := memory.New()
	s := resp.New(resp.Options{Store: store, Users: []resp.User{{Name: "default", Password: "secret"}}, AuthWithin: 2 * testTimeout})
	addr := listen(t, s)
	f := func(sent, want string) {
		t.Helper()
		c := dial(t, addr)
		go func() { _, _ = io.WriteString(c, sent) }()
		if got := c.gone(); got != want {
			t.Errorf("%.40q: got %q, want %q", sent, got, want)
		}
	}
	f("*11\r\n", "-ERR Protocol error: unauthenticated multibulk length\r\n")
	f("*2\r\n$4\r\nAUTH\r\n$1025\r\n", "-ERR Protocol error: unauthenticated bulk length\r\n")
	f("*9\r\n"+strings.Repeat("$1000\r\n"+strings.Repeat("x", 1000)+"\r\n", 9), "-ERR Protocol error: too big command\r\n")
	f(strings.Repeat("x", 5000), "-ERR Protocol error: too big inline request\r\n")
	wrong := "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
	f(strings.Repeat(encode("AUTH", "x"), 20), strings.Repeat(wrong, 10))
	if st := s.Stats(); st.Stalled != 0 || st.WrongAuth != 10 {
		t.Errorf("%+v", st)
	}
}

// Many clients that begin large commands hold no more than the bound, and many that send
// without reading hold no more than their buffers.
func TestMemoryIsBounded(t *testing.T) {
	const large, clients = 4 << 20, 200
	store := memory.New()
	s := resp.New(resp.Options{Store: store, LargeBytes: large})
	addr := listen(t, s)
	before := heap()
	begun := "*4\r\n" + strings.Repeat("$60000\r\n"+strings.Repeat("x", 60000)+"\r\n", 3) + "$60000\r\n"
	flood := strings.Repeat(encode("ECHO", strings.Repeat("x", 60000)), 40)
	for i := range clients {
		c := dial(t, addr)
		go func() {
			if i%2 == 0 {
				_, _ = io.WriteString(c, begun)
			} else {
				_, _ = io.WriteString(c, flood) // and never reads
			}
		}()
	}
	testdep.Eventually(t, "bounded buffers", func() bool {
		st := s.Stats()
		if st.LargeBytes > large {
			t.Fatalf("%d bytes of large buffers", st.LargeBytes)
		}
		return st.Accepted == clients && st.LargeBytes > large*3/4
	})
	// Each may also hold a usual buffer, and output of one write and a reply. Those that are
	// still to come may make it more, and never do.
	for range 20 {
		if grown := heap() - before; grown > large+clients*(16<<10+3*(64<<10))+8<<20 {
			t.Fatalf("the heap has grown by %d KiB", grown>>10)
		}
		time.Sleep(5 * time.Millisecond)
	}
	_ = s.Close()
	if st := s.Stats(); st.LargeBytes != 0 || st.Connections != 0 {
		t.Errorf("%+v", st)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Connections that have sent the largest there is, and then do nothing, hold little.
func TestIdleHoldsLittle(t *testing.T) {
	const clients = 100
	store := memory.New()
	s := resp.New(resp.Options{Store: store, Desk: newDesk(t, store)})
	addr := listen(t, s)
	many := []string{"DEL"}
	for len(many) < resp.MaxArgs {
		many = append(many, "key")
	}
	large := []string{"TG.CHECK", "PATH", "/posts", "BODY", strings.Repeat("x", resp.MaxBulk), "HEADER", "a", strings.Repeat("x", resp.MaxBulk), "HEADER", "b", strings.Repeat("x", resp.MaxBulk)}
	dial(t, addr).call(large...) // what is made once
	all := make([]*client, clients)
	for i := range all {
		all[i] = dial(t, addr)
	}
	before := heap()
	for _, c := range all {
		c.call(large...)
		c.call(many...)
		for range 70 { // and then as usual
			c.call("PING")
		}
	}
	if each := (heap() - before) / clients; each > 16<<10 {
		t.Errorf("each of them holds %d bytes", each)
	}
	if n := s.Stats().LargeBytes; n != 0 {
		t.Errorf("%d bytes of large buffers", n)
	}
}

// Shutdown lets everybody have the answers to what was read, and then hangs up.
func TestShutdown(t *testing.T) {
	store := memory.New()
	s, c := serve(t, resp.Options{Store: store})
	idle, half := c.another(), c.another()
	half.want("PING", "+PONG|")
	half.send("*2\r\n$4\r\nECHO")
	c.send(strings.Repeat("PING\r\n", 1000))
	for range 1000 {
		c.reply()
	}
	if err := s.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*client{c, idle, half} {
		if got := c.gone(); got != "" {
			t.Errorf("%q", got)
		}
	}
	if conn, err := net.Dial("tcp", c.addr); err == nil {
		t.Error("it still listens")
		_ = conn.Close()
	}
	if st := s.Stats(); st.Connections != 0 || st.Stalled != 0 {
		t.Errorf("%+v", st)
	}
	if err := s.Serve(closedListener{}); err != nil {
		t.Errorf("Serve after Shutdown: %v", err)
	}
}

type closedListener struct{ net.Listener }

func (closedListener) Close() error { return nil }

// Users can be changed while they are connected.
func TestSetUsers(t *testing.T) {
	store := memory.New()
	ann, bob := resp.User{Name: "ann", Password: "a", Prefix: "1:"}, resp.User{Name: "bob", Password: "b"}
	s, a := serve(t, resp.Options{Store: store, Users: []resp.User{ann, bob}})
	b, c := a.another(), a.another()
	a.want("AUTH ann a", "+OK|")
	b.want("AUTH bob b", "+OK|")
	a.want("CL.THROTTLE k 0 1 3600", "*5|:0|:1|:0|:-1|:3600|")
	ann.Prefix, bob.Password = "2:", "changed"
	s.SetUsers([]resp.User{ann, bob})
	a.want("CL.THROTTLE k 0 1 3600", "*5|:0|:1|:0|:-1|:3600|") // another prefix
	b.want("PING", "-NOAUTH Authentication required.|")
	b.want("AUTH bob b", "-WRONGPASS invalid username-password pair or user is disabled.|")
	b.want("AUTH bob changed", "+OK|")
	c.want("PING", "-NOAUTH Authentication required.|")
	s.SetUsers(nil)
	c.want("PING", "+PONG|")
}
