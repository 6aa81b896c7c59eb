//go:build unix

package serve

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// load sends requests at a steady rate over connections that are kept. Who falls
// behind catches up. It does what every client of HTTP/1.1 does: a request on a
// connection that was used before and is closed without a word goes out again on a
// new one. Anything else that is not a 200 is a failure.
type load struct {
	address string
	rate    int // requests a second
	conns   int

	sent, closed, retried atomic.Int64
	slowest               atomic.Int64
	mu                    sync.Mutex
	failures              []string
	clients               sync.WaitGroup
}

// run sends for a time, in the background.
func (l *load) run(during time.Duration) {
	start := time.Now()
	for i := range l.conns {
		l.clients.Go(func() {
			c := &loadClient{load: l}
			defer c.close()
			each := time.Duration(l.conns) * time.Second / time.Duration(l.rate)
			for at := start.Add(each * time.Duration(i) / time.Duration(l.conns)); at.Sub(start) < during; at = at.Add(each) {
				time.Sleep(time.Until(at))
				begun := time.Now()
				if err := c.ask(); err != nil {
					l.fail(fmt.Sprintf("after %s: %v", time.Since(start), err))
				}
				l.sent.Add(1)
				for took := int64(time.Since(begun)); ; {
					if old := l.slowest.Load(); took <= old || l.slowest.CompareAndSwap(old, took) {
						break
					}
				}
			}
		})
	}
}

func (l *load) fail(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures = append(l.failures, why)
}

// wait ends the load, and tells what came of it.
func (l *load) wait(t testing.TB, during time.Duration) {
	t.Helper()
	l.clients.Wait()
	t.Logf("%d requests, %d connections closed by the server after an answer, %d requests sent again, the slowest took %s",
		l.sent.Load(), l.closed.Load(), l.retried.Load(), time.Duration(l.slowest.Load()))
	if want := int64(during.Seconds() * float64(l.rate)); l.sent.Load() < want {
		t.Errorf("%d requests were sent, want %d", l.sent.Load(), want)
	}
	if n := len(l.failures); n > 0 {
		t.Errorf("%d requests failed, the first %s", n, l.failures[0])
	}
}

// loadClient has one connection at a time.
type loadClient struct {
	*load
	conn net.Conn
	in   *bufio.Reader
}

func (c *loadClient) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

func (c *loadClient) ask() error {
	for {
		reused := c.conn != nil
		if !reused {
			conn, err := net.DialTimeout("tcp", c.address, 10*time.Second)
			if err != nil {
				return err
			}
			c.conn, c.in = conn, bufio.NewReader(conn)
		}
		answered, err := c.exchange()
		if err == nil {
			return nil
		}
		c.close()
		if answered || !reused {
			return err
		}
		c.retried.Add(1)
	}
}

// exchange reports whether anything came back.
func (c *loadClient) exchange() (answered bool, err error) {
	if err := c.conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return false, err
	}
	if _, err := io.WriteString(c.conn, "GET /healthz HTTP/1.1\r\nHost: load\r\n\r\n"); err != nil {
		return false, err
	}
	if _, err := c.in.Peek(1); err != nil {
		return false, err
	}
	res, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return true, err
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return true, err
	}
	if res.StatusCode != http.StatusOK {
		return true, fmt.Errorf("answered %s", res.Status)
	}
	if res.Close {
		c.closed.Add(1)
		c.close()
	}
	return true, nil
}
