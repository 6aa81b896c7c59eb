package gateway

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
)

// A request whose client leaves the queue frees its place, also if nobody has read its body, or
// not all of it has come.
func TestLeavingTheQueueWithABody(t *testing.T) {
	queues := map[string]string{
		"booked": "limits: { rate: 1/hour, algorithm: leaky_bucket }",
		"line":   "limits: { rate: 1/hour, algorithm: sliding_log }",
		"slots":  "concurrency: { slots: 1, lease: 1h }",
	}
	requests := map[string]string{
		"none":    "GET /wait HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"whole":   "POST /wait HTTP/1.1\r\nHost: example.com\r\nContent-Length: 5\r\n\r\nhello",
		"chunked": "POST /wait HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		"half":    "POST /wait HTTP/1.1\r\nHost: example.com\r\nContent-Length: 50\r\n\r\nhello",
		"long":    "POST /wait HTTP/1.1\r\nHost: example.com\r\nContent-Length: 30000\r\n\r\n" + fmt.Sprintf("%030000d", 0),
		"expect":  "POST /wait HTTP/1.1\r\nHost: example.com\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n",
	}
	secure, clients := certificate(t)
	for name, limit := range queues {
		for _, config := range []*tls.Config{nil, secure} {
			t.Run(fmt.Sprintf("%s/tls=%t", name, config != nil), func(t *testing.T) {
				t.Parallel()
				reached, release := make(chan bool, 100), make(chan bool)
				g := start(t, Options{
					Gate: gateOf(t, "version: 1\nrules: [{ name: wait, per: everyone, queue: { places: 100, max_wait: 200h }, "+limit+" }]\n"),
					Upstreams: []*url.URL{serve(t, func(_ http.ResponseWriter, r *http.Request) {
						reached <- true
						select {
						case <-release:
						case <-r.Context().Done():
						}
					})},
				}, config)
				dial := func() net.Conn {
					var conn net.Conn
					var err error
					if config == nil {
						conn, err = net.Dial("tcp", g.addr)
					} else {
						conn, err = tls.Dial("tcp", g.addr, &tls.Config{RootCAs: clients, ServerName: "example.com"})
					}
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { conn.Close() })
					return conn
				}
				first := dial() // has the turn
				if _, err := io.WriteString(first, requests["none"]); err != nil {
					t.Fatal(err)
				}
				<-reached
				for what, request := range requests {
					conn := dial()
					if _, err := io.WriteString(conn, request); err != nil {
						t.Fatal(err)
					}
					soon(t, what+" waits", func() bool { return g.InFlight() == 2 })
					conn.Close()
					soon(t, what+" has left", func() bool { return g.InFlight() == 1 })
				}
				close(release)
				if len(reached) > 0 {
					t.Errorf("%d reached the upstream after their clients had left", len(reached))
				}
			})
		}
	}
}
