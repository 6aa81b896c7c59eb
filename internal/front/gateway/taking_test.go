package gateway

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/rawh2"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// takesNothing is an upstream that speaks HTTP/2, begins with these settings, acknowledges what has
// to be acknowledged, and takes no byte of a body.
func takesNothing(t *testing.T, config *tls.Config, settings []byte) net.Listener {
	t.Helper()
	config = config.Clone()
	config.NextProtos = []string{"h2"}
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	serveConns(t, l, func(c net.Conn) {
		if _, err := io.CopyN(io.Discard, c, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
			return
		}
		frame := func(kind, flags byte, payload []byte) {
			_, _ = c.Write(append([]byte{0, 0, byte(len(payload)), kind, flags, 0, 0, 0, 0}, payload...))
		}
		frame(rawh2.FrameSettings, 0, settings)
		for {
			var head [9]byte
			if _, err := io.ReadFull(c, head[:]); err != nil {
				return
			}
			payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
			if _, err := io.ReadFull(c, payload); err != nil {
				return
			}
			switch kind, ack := head[3], head[4]&rawh2.FlagAck != 0; {
			case kind == rawh2.FrameSettings && !ack:
				frame(kind, rawh2.FlagAck, nil)
			case kind == rawh2.FramePing && !ack:
				frame(kind, rawh2.FlagAck, payload)
			}
		}
	})
	return l
}

// An upstream that keeps its connection alive and takes nothing of a request is too slow, whether
// it gives no room for bodies or allows no streams.
func TestHTTP2UpstreamThatTakesNothing(t *testing.T) {
	t.Parallel()
	config, pool := certificate(t)
	const maxStreams, initialWindow = 3, 4
	setting := func(id uint16, value uint32) []byte {
		return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(nil, id), value)
	}
	for name, settings := range map[string][]byte{
		"no window":     setting(initialWindow, 0),
		"little window": setting(initialWindow, 1000),
		"usual window":  nil,
		"no streams":    setting(maxStreams, 0),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := takesNothing(t, config, settings)
			testdep.Undisturbed(t, brief/4, func(t testing.TB) {
				g := start(t, Options{
					Upstreams: []*url.URL{parseURL(t, "https://"+up.Addr().String())},
					Transport: Transport{TLS: &tls.Config{RootCAs: pool, ServerName: "example.com"}},
					Limits:    Limits{Upstream: brief},
				}, nil)
				for range 2 { // over a new connection, and over the same
					for _, request := range []string{
						"POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: %d\r\n\r\n",
						"PUT / HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n",
						"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n",
					} {
						conn := dial(t, g.addr)
						go func() {
							_, _ = fmt.Fprintf(conn, request, 1<<20)
							_, _ = io.Copy(conn, zeros(1<<20))
						}()
						res, err := http.ReadResponse(bufio.NewReader(conn), nil)
						if err != nil {
							t.Fatal(err)
						}
						// Settings that arrive while a request is being sent can make http.Transport give up the
						// connection: then it is a 502 at once.
						gaveUp := name == "no streams" && res.StatusCode == http.StatusBadGateway
						if res.StatusCode != http.StatusGatewayTimeout && !gaveUp {
							t.Errorf("%.20q: %s", request, res.Status)
						}
						conn.Close()
					}
				}
				soon(t, "nothing is in flight", func() bool { return g.InFlight() == 0 && g.Upstreams()[0].InFlight == 0 })
			})
		})
	}
}

// A client that pauses in its body does not make the upstream too slow, neither before the answer
// nor during it.
func TestHTTP2UpstreamThatWaitsForTheClient(t *testing.T) {
	t.Parallel()
	testdep.Undisturbed(t, brief/4, func(t testing.TB) {
		for _, early := range []bool{false, true} {
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if early {
					_ = http.NewResponseController(w).Flush()
				}
				n, err := io.Copy(io.Discard, r.Body)
				_, _ = fmt.Fprint(w, r.Proto, " ", n, " ", err)
			}))
			s.EnableHTTP2 = true
			s.StartTLS()
			defer s.Close()
			g := start(t, Options{
				Upstreams: []*url.URL{parseURL(t, s.URL)},
				Transport: Transport{TLS: &tls.Config{InsecureSkipVerify: true}},
				Limits:    Limits{Upstream: brief},
			}, nil)
			body, send := io.Pipe()
			go func() {
				for range 3 {
					_, _ = io.WriteString(send, "hello")
					time.Sleep(2 * brief)
				}
				send.Close()
			}()
			res, got := do(t, newRequest(t, http.MethodPost, g.url, body))
			if res.StatusCode != http.StatusOK || got != "HTTP/2.0 15 <nil>" {
				t.Errorf("early %t: %s %q", early, res.Status, got)
			}
		}
	})
}
