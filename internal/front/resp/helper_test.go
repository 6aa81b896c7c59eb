package resp_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/queue"
	"tidegate.dev/tidegate/internal/front/desk"
	"tidegate.dev/tidegate/internal/front/resp"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

// clock is a time that a test sets.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Date(2026, 1, 5, 1, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

const ruleFile = `
version: 1
identify:
  user: header X-User
  account: body.account
rules:
  - { name: tokens, match: POST /chat, per: ip, limits: 100/24h }
  - { name: login, match: POST /login, per: ip, limits: 2/hour, count: { status: 401 } }
  - { name: lane, match: /lane, per: everyone, limits: { rate: 1/minute, algorithm: fixed_window }, queue: { places: 10, max_wait: 1h } }
  - { name: posts, match: /posts, per: user, limits: 3/hour }
  - { name: search, match: /search, per: ip, limits: 10/hour, over: { soft: 20% } }
  - { name: render, match: /render, per: ip, concurrency: { slots: 1, lease: 30s } }
  - { name: body, match: /body, per: account, limits: 1/hour }
  - { name: private, match: /private, deny: true }
`

// newDesk is a desk by the rules above on counters in store.
func newDesk(t testing.TB, store tidegate.Store) *desk.Desk {
	t.Helper()
	set, err := rules.Parse("rules.yaml", []byte(ruleFile), rules.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return desk.New(tidegate.NewGate(set, queue.New(chain.Adapt(store))))
}

// onMemory serves commands on counters in memory by the clock now.
func onMemory(t testing.TB, now func() time.Time, change func(*resp.Options)) *client {
	t.Helper()
	store := memory.Open(memory.Config{Now: now})
	o := resp.Options{Desk: newDesk(t, store), Store: store, Report: func(err error) { t.Error(err) }}
	if change != nil {
		change(&o)
	}
	_, c := serve(t, o)
	return c
}

// serve starts a server and connects to it.
func serve(t testing.TB, o resp.Options) (*resp.Server, *client) {
	t.Helper()
	s := resp.New(o)
	addr := listen(t, s)
	return s, dial(t, addr)
}

func listen(t testing.TB, s *resp.Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		_ = s.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// client is a connection that a test writes bytes to.
type client struct {
	testing.TB
	net.Conn
	addr string
	r    *bufio.Reader
}

// testTimeout is far longer than anything takes.
const testTimeout = 30 * time.Second

func dial(t testing.TB, addr string) *client {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(testTimeout))
	return &client{t, c, addr, bufio.NewReader(c)}
}

func (c *client) another() *client { return dial(c.TB, c.addr) }

func (c *client) send(raw string) {
	c.Helper()
	if _, err := io.WriteString(c, raw); err != nil {
		c.Fatalf("write: %v", err)
	}
}

// encode is a command as clients send it.
func encode(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.String()
}

// do sends a command of words and returns the reply as it came.
func (c *client) do(line string) string {
	c.Helper()
	return c.call(strings.Fields(line)...)
}

func (c *client) call(args ...string) string {
	c.Helper()
	c.send(encode(args...))
	return c.reply()
}

// reply reads one reply, whole and as it was sent.
func (c *client) reply() string {
	c.Helper()
	var b bytes.Buffer
	if err := c.read(&b); err != nil {
		c.Fatalf("read: %v, after %q", err, b.String())
	}
	return b.String()
}

func (c *client) read(b *bytes.Buffer) error {
	line, err := c.r.ReadString('\n')
	b.WriteString(line)
	if err != nil {
		return err
	}
	n, _ := strconv.Atoi(strings.TrimSpace(line[1:]))
	switch line[0] {
	case '$', '=':
		if n < 0 {
			return nil
		}
		_, err = io.CopyN(b, c.r, int64(n)+2)
		return err
	case '%':
		n *= 2
		fallthrough
	case '*':
		for range n {
			if err := c.read(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// want sends a command and compares the reply, with | for each end of a line.
func (c *client) want(line, want string) {
	c.Helper()
	if got := strings.ReplaceAll(c.do(line), "\r\n", "|"); got != want {
		c.Errorf("%s\n\tgot  %s\n\twant %s", line, got, want)
	}
}

// gone waits until the server has closed the connection, and returns what it said before.
func (c *client) gone() string {
	c.Helper()
	rest, err := io.ReadAll(c.r)
	if err != nil && !strings.Contains(err.Error(), "reset") {
		c.Fatalf("the connection is still there: %v", err)
	}
	return string(rest)
}

// fields are the pairs of a TG reply, by name.
func fields(reply string) map[string]string {
	lines := strings.Split(reply, "\r\n")
	var values []string
	for i := 1; i < len(lines)-1; i++ {
		if lines[i][0] == '$' {
			i++
			values = append(values, lines[i])
		} else {
			values = append(values, lines[i][1:])
		}
	}
	all := map[string]string{}
	for i := 0; i+1 < len(values); i += 2 {
		all[values[i]] = values[i+1]
	}
	return all
}
