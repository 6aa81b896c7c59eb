package gateway

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// resetting is an upstream that speaks HTTP/2 and, when it is told to, resets the next
// stream with a code, without a word about whether it has looked at the request.
type resetting struct {
	net.Listener
	code    atomic.Int64 // 0 resets nothing
	arrived atomic.Int64 // requests
}

func newResetting(t *testing.T, config *tls.Config) *resetting {
	t.Helper()
	config = config.Clone()
	config.NextProtos = []string{"h2"}
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	s := &resetting{Listener: l}
	serveConns(t, l, s.serve)
	return s
}

func (s *resetting) serve(c net.Conn) {
	if _, err := io.CopyN(io.Discard, c, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
		return
	}
	frame := func(kind, flags byte, stream uint32, payload ...byte) {
		head := []byte{0, 0, byte(len(payload)), kind, flags}
		_, _ = c.Write(append(binary.BigEndian.AppendUint32(head, stream), payload...))
	}
	frame(4, 0, 0) // SETTINGS
	for {
		var head [9]byte
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, c, int64(head[0])<<16|int64(head[1])<<8|int64(head[2])); err != nil {
			return
		}
		stream := binary.BigEndian.Uint32(head[5:])
		switch kind, flags := head[3], head[4]; {
		case kind == 4 && flags&1 == 0:
			frame(4, 1, 0)
		case kind == 1: // HEADERS
			s.arrived.Add(1)
			if code := s.code.Load(); code > 0 {
				s.code.Store(0)
				frame(3, 0, stream, 0, 0, 0, byte(code)) // RST_STREAM
			} else {
				frame(1, 5, stream, 0x88) // :status 200, the end
			}
		}
	}
}

// A stream that the upstream resets without saying that it has not looked at the request
// is not sent again, whatever the code and the method. One that it refuses is.
func TestResetStreamsAreNotSentAgain(t *testing.T) {
	config, pool := certificate(t)
	for code := int64(2); code <= 13; code++ { // net/http takes 1, PROTOCOL_ERROR, for a refusal
		for _, method := range []string{"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "POST", "POST body"} {
			t.Run(fmt.Sprintf("%d/%s", code, method), func(t *testing.T) {
				t.Parallel()
				s := newResetting(t, config)
				g := start(t, Options{
					Upstreams: []*url.URL{parseURL(t, "https://"+s.Addr().String())},
					Transport: Transport{TLS: &tls.Config{RootCAs: pool, ServerName: "example.com"}},
				}, nil)
				name, body, _ := strings.Cut(method, " ")
				send := func() int {
					res, _ := do(t, newRequest(t, name, g.url, strings.NewReader(body)))
					return res.StatusCode
				}
				if got := send(); got != http.StatusOK {
					t.Fatalf("%d before", got)
				}
				s.arrived.Store(0)
				s.code.Store(code)
				times, status := int64(1), http.StatusBadGateway
				if code == 7 && body == "" { // REFUSED_STREAM
					times, status = 2, http.StatusOK
				}
				if got := send(); s.arrived.Load() != times || got != status {
					t.Errorf("it arrived %d times, answered %d; want %d, %d", s.arrived.Load(), got, times, status)
				}
			})
		}
	}
}
