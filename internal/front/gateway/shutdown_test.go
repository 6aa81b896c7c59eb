package gateway

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/rawh2"
)

// Connections without a request hold up nobody who wants to end: they are closed, or
// told to go away, and the end comes with the last answer, which is whole.
func TestShutdownInAHurry(t *testing.T) {
	server, _ := certificate(t)
	const size = 300_000
	entered, release := make(chan bool), make(chan bool)
	upstreams := []*url.URL{serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			entered <- true
			<-release
		}
		_, _ = io.WriteString(w, strings.Repeat("x", size))
	})}
	for _, config := range []*tls.Config{nil, server} {
		for _, busy := range []bool{false, true} {
			t.Run(fmt.Sprintf("TLS %v, busy %v", config != nil, busy), func(t *testing.T) {
				g := start(t, Options{Upstreams: upstreams, IdleGrace: time.Hour}, config)
				idle := []string{
					"", "GET / HT", "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n",
					"POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 0\r\n\r\n",
				}
				for _, sent := range idle {
					conn := dial(t, g.addr)
					if config != nil {
						secure := tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
						if err := secure.Handshake(); err != nil {
							t.Fatal(err)
						}
						conn = secure
					}
					fmt.Fprint(conn, sent)
					if strings.HasSuffix(sent, "\r\n\r\n") {
						if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
							t.Fatal(err)
						}
						go func() { _, _ = io.Copy(io.Discard, conn) }()
					}
				}
				var c *rawh2.Conn
				if config != nil {
					c = rawh2.Dial(t, g.addr, 1<<20)
					c.Window(0, 1<<20)
					c.Answered("/", size)
				}
				slow := make(chan string, 1)
				var stream uint32
				if busy {
					go func() {
						once := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
						res, err := once.Get(g.url + "/slow")
						if err != nil {
							slow <- err.Error()
							return
						}
						defer res.Body.Close()
						body, err := io.ReadAll(res.Body)
						slow <- fmt.Sprint(len(body), err)
					}()
					<-entered
					if c != nil {
						stream = c.Request("GET", "/slow", true)
						<-entered
					}
				}
				g.SkipIdleGrace()
				down, begun := make(chan error, 1), time.Now()
				go func() { down <- shutdown(t, g, time.Minute) }()
				if busy {
					soon(t, "only the busy are left", func() bool { return g.server.Draining() && g.Connections() <= 4 })
					select {
					case err := <-down:
						t.Fatalf("it ended with requests under way: %v", err)
					default:
					}
					release <- true
					if c != nil {
						release <- true // both, since either of them may be the first to wait
					}
					if got := <-slow; got != fmt.Sprint(size, " <nil>") {
						t.Errorf("the slow request: %s", got)
					}
					if c != nil {
						soon(t, "the stream is over", func() bool { return c.Over(stream) })
						if _, n, ended, _ := c.Received(stream); n != size || !ended {
							t.Errorf("the slow stream: %d bytes, ended %v", n, ended)
						}
					}
				}
				if err := <-down; err != nil {
					t.Errorf("Shutdown: %v", err)
				}
				if took := time.Since(begun); took > 10*time.Second {
					t.Errorf("it took %s", took)
				}
				if c != nil {
					soon(t, "the client was told to go away", c.Away)
				}
			})
		}
	}
}
