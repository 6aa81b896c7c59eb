package listen

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Requests that two servers may read in two ways never reach a handler, and neither does
// anything behind them on the connection.
func TestMalformedRequestsAreRefused(t *testing.T) {
	const behind = "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
	malformed := []string{
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\ntransfer-encoding:chunked\r\ncontent-length:0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 6\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5" + strings.Repeat(" ", 60) + "\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length : 5\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n 5\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n chunked\r\n\r\n",
		"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n c\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n\tHost: c\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
		"GET / HTTP/1.1\r\n\r\n",
	}
	plainAndTLS(t, func(t *testing.T, config *tls.Config) {
		var reached atomic.Int64
		s := start(t, ServerOptions{
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/first" {
					reached.Add(1)
				}
				_, _ = io.Copy(io.Discard, r.Body)
			}),
			Limits: HTTPLimits{Limits: Limits{Stall: 5 * time.Second}},
		}, config)
		for _, first := range []string{"", "GET /first HTTP/1.1\r\nHost: a\r\n\r\n", "POST /first HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"} {
			for _, sent := range malformed {
				conn := dial(t, s.addr, config)
				fmt.Fprint(conn, first+sent+behind)
				in := bufio.NewReader(conn)
				if first != "" {
					if res, err := http.ReadResponse(in, nil); err != nil || res.StatusCode != http.StatusOK {
						t.Fatalf("the request before %q: %v, %v", sent, res, err)
					}
				}
				res, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Errorf("%q: %v", sent, err)
					continue
				}
				if res.StatusCode != http.StatusBadRequest && res.StatusCode != http.StatusNotImplemented || !res.Close {
					t.Errorf("%q after %q: %s, close %v", sent, first, res.Status, res.Close)
				}
				_, _ = io.Copy(io.Discard, res.Body)
				if _, err := in.ReadByte(); err == nil {
					t.Errorf("%q: the connection goes on", sent)
				}
				if n := reached.Swap(0); n > 0 {
					t.Errorf("%q after %q: %d requests reached the handler", sent, first, n)
				}
			}
		}
	})
}

// Headers are bounded in size, as is the time for them.
func TestLongHeaders(t *testing.T) {
	plainAndTLS(t, func(t *testing.T, config *tls.Config) {
		s := start(t, ServerOptions{Handler: hello, Limits: HTTPLimits{HeaderBytes: 8 << 10}}, config)
		for size, want := range map[int]int{1 << 10: http.StatusOK, 1 << 20: http.StatusRequestHeaderFieldsTooLarge} {
			conn := dial(t, s.addr, config)
			go func() { fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: a\r\nA: %s\r\n\r\n", strings.Repeat("a", size)) }()
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || res.StatusCode != want {
				t.Errorf("%d bytes: %v, %v, want %d", size, res, err, want)
			}
		}
	})
}
