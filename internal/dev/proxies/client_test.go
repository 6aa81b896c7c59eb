package proxies

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// client sends requests to a proxy as they are written, over one connection.
type client struct {
	t    *testing.T
	addr string
	conn net.Conn
	in   *bufio.Reader
}

// answer is what the client got.
type answer struct {
	status int
	header http.Header
	body   string
}

func newClient(t *testing.T, addr string) *client {
	c := &client{t: t, addr: addr}
	t.Cleanup(c.close)
	return c
}

func (c *client) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

func (c *client) get(target string, header ...string) answer {
	c.t.Helper()
	return c.send("GET", target, "", header...)
}

// ask is get without headers.
func (c *client) ask(target string) answer { return c.get(target) }

// send sends a request with a body of a known length, and header lines.
func (c *client) send(method, target, body string, header ...string) answer {
	c.t.Helper()
	if body != "" {
		header = append(header, fmt.Sprintf("Content-Length: %d", len(body)))
	}
	lines := ""
	for _, line := range header {
		lines += line + "\r\n"
	}
	if !strings.Contains(lines, "Host: ") {
		lines = "Host: example.com\r\n" + lines
	}
	return c.exchange(method, fmt.Sprintf("%s %s HTTP/1.1\r\n%s\r\n%s", method, target, lines, body))
}

func (c *client) exchange(method, request string) answer {
	c.t.Helper()
	for again := c.conn != nil; ; again = false { // it may have been closed
		if c.conn == nil {
			conn, err := net.Dial("tcp", c.addr)
			if err != nil {
				c.t.Fatal(err)
			}
			c.conn, c.in = conn, bufio.NewReader(conn)
		}
		_ = c.conn.SetDeadline(time.Now().Add(time.Minute))
		_, _ = io.WriteString(c.conn, request)
		res, err := http.ReadResponse(c.in, &http.Request{Method: method})
		var body []byte
		if err == nil {
			body, err = io.ReadAll(res.Body)
		}
		if err != nil || res.Close {
			c.close()
		}
		if err == nil {
			return answer{res.StatusCode, res.Header, string(body)}
		}
		if !again {
			return answer{} // closed without a word
		}
	}
}
