//go:build unix

package serve

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// load sends requests at a steady rate over connections that are kept. One that
// falls behind catches up. It does what every client of HTTP/1.1 does: a request on a
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

// volleys sends in the background until ctx ends: with each volley a request on every connection, by
// one goroutine, which costs a fraction of what one for every connection does. What is late by more
// than a second is left out.
func (l *load) volleys(ctx context.Context) {
	clients := make([]*loadClient, l.conns)
	for i := range clients {
		clients[i] = &loadClient{load: l}
	}
	each := time.Duration(l.conns) * time.Second / time.Duration(l.rate)
	l.clients.Go(func() {
		for at := time.Now(); ctx.Err() == nil; at = at.Add(each) {
			late := time.Since(at)
			time.Sleep(-late)
			if late > time.Second {
				at = time.Now()
			}
			for _, c := range clients {
				c.begin()
			}
			for _, c := range clients {
				if err := c.end(); err != nil {
					l.fail(err.Error())
				}
				l.sent.Add(1)
			}
		}
		for _, c := range clients {
			c.close()
		}
	})
}

// loadClient has one connection at a time.
type loadClient struct {
	*load
	conn net.Conn
	in   *bufio.Reader

	reused bool  // by the request that was begun
	err    error // of beginning it
}

func (c *loadClient) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

func (c *loadClient) ask() error {
	c.begin()
	return c.end()
}

var loadRequest = []byte("GET /healthz HTTP/1.1\r\nHost: load\r\n\r\n")

// begin sends a request.
func (c *loadClient) begin() {
	c.reused, c.err = c.conn != nil, nil
	if !c.reused {
		if c.conn, c.err = net.DialTimeout("tcp", c.address, 10*time.Second); c.err != nil {
			c.conn = nil
			return
		}
		c.in = bufio.NewReader(c.conn)
	}
	if c.err = c.conn.SetDeadline(time.Now().Add(10 * time.Second)); c.err == nil {
		_, c.err = c.conn.Write(loadRequest)
	}
}

// end reads the answer to the request that was begun, or asks again.
func (c *loadClient) end() error {
	answered, err := false, c.err
	if err == nil {
		answered, err = c.receive()
	}
	if err == nil {
		return nil
	}
	c.close()
	if answered || !c.reused {
		return err
	}
	c.retried.Add(1)
	return c.ask()
}

// receive reads an answer with as little work as can be, and reports whether anything came back.
func (c *loadClient) receive() (answered bool, err error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return len(line) > 0, err
	}
	status := "200"
	if !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")) {
		status = string(bytes.TrimSpace(line))
	}
	length, closes := -1, false
	for {
		if line, err = c.in.ReadSlice('\n'); err != nil {
			return true, err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			break
		}
		switch name, value, _ := bytes.Cut(line, []byte(": ")); {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(value)); err != nil {
				return true, err
			}
		case bytes.EqualFold(name, []byte("Connection")):
			closes = bytes.EqualFold(value, []byte("close"))
		}
	}
	if length < 0 {
		return true, fmt.Errorf("the answer %s has no length", status)
	}
	if _, err := c.in.Discard(length); err != nil {
		return true, err
	}
	if status != "200" {
		return true, fmt.Errorf("answered %s", status)
	}
	if closes {
		c.closed.Add(1)
		c.close()
	}
	return true, nil
}
