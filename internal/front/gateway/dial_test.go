package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"testing"
	"time"
)

// An upstream that takes nothing of a body is too slow, and holds its client no longer than one
// that does not answer.
func TestUpstreamThatTakesNoBody(t *testing.T) {
	t.Parallel()
	held := make(chan bool)
	defer close(held)
	up := rawUpstream(t, func(net.Conn) { <-held })
	g := start(t, Options{Upstreams: []*url.URL{parseURL(t, "http://"+up.Addr().String())}, Limits: Limits{Upstream: brief}}, nil)
	const size = 1 << 30 // more than any buffer on the way
	for _, request := range []string{
		"POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: %d\r\n\r\n",
		"PUT / HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n",
		"GET / HTTP/1.1\r\nHost: example.com\r\nContent-Length: %d\r\n\r\n",
	} {
		conn := dial(t, g.addr)
		go func() {
			fmt.Fprintf(conn, request, size)
			_, _ = io.Copy(conn, zeros(size))
		}()
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != http.StatusGatewayTimeout {
			t.Errorf("%.20q: %s", request, res.Status)
		}
		conn.Close()
	}
	soon(t, "nothing is in flight", func() bool { return g.InFlight() == 0 && g.Upstreams()[0].InFlight == 0 })
}

// A deadline is set when a write may wait for longer than the limit, and not for every write.
// One that somebody else has set stays.
func TestWriteBoundConn(t *testing.T) {
	conn, peer := connected(t)
	go func() { _, _ = io.Copy(io.Discard, peer) }()
	noted := &noting{TCPConn: conn}
	c := &writeBoundConn{Conn: noted, limit: time.Hour, opened: time.Now()}
	write := func(sets int) {
		t.Helper()
		for range 10 {
			if _, err := io.WriteString(c, "hello"); err != nil {
				t.Fatal(err)
			}
		}
		if noted.sets != sets || time.Until(noted.latest) < time.Hour/2 {
			t.Errorf("%d deadlines, the last is %v; want %d", noted.sets, noted.latest, sets)
		}
	}
	write(1)
	c.opened = c.opened.Add(-30 * time.Minute) // half an hour later
	write(2)
	_ = c.SetWriteDeadline(time.Now().Add(45 * time.Minute))
	write(3)
	_ = c.SetWriteDeadline(time.Time{})
	noted.sets = 0
	write(1)
	_ = c.SetDeadline(time.Now().Add(45 * time.Minute))
	write(1)
	if err := c.CloseWrite(); err != nil {
		t.Error(err)
	}
	if _, err := io.WriteString(c, "hello"); err == nil {
		t.Error("written after the end")
	}
}

// noting counts the deadlines for writes that are set alone, and keeps the last.
type noting struct {
	*net.TCPConn
	sets   int
	latest time.Time
}

func (n *noting) SetWriteDeadline(t time.Time) error {
	n.sets++
	n.latest = t
	return n.TCPConn.SetWriteDeadline(t)
}

// partial takes a byte of each write until its deadline has passed.
type partial struct {
	*net.TCPConn
	bytes int // it takes so many more
}

func (p *partial) Write(b []byte) (int, error) {
	if p.bytes == 0 {
		return 0, os.ErrDeadlineExceeded
	}
	p.bytes--
	if len(b) == 1 {
		return 1, nil
	}
	return 1, os.ErrDeadlineExceeded
}

// An upstream that takes a body slowly is not one that takes nothing.
func TestSlowWritesGoOn(t *testing.T) {
	f := func(bytes int, theirs bool, want int, fails bool) {
		t.Helper()
		conn, _ := connected(t)
		c := &writeBoundConn{Conn: &partial{conn, bytes}, limit: time.Hour, opened: time.Now()}
		if theirs {
			_ = c.SetDeadline(time.Now().Add(time.Hour))
		}
		if n, err := io.WriteString(c, "hello"); n != want || (err != nil) != fails {
			t.Errorf("of %d bytes: %d, %v", bytes, n, err)
		}
	}
	f(5, false, 5, false)
	f(9, false, 5, false)
	f(3, false, 3, true)
	f(0, false, 0, true)
	f(5, true, 1, true)
}
