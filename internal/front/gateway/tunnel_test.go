package gateway

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// webSocket is an upstream that echoes what comes through the tunnel. What is in
// frames is not looked at: that is between client and upstream.
func webSocket(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != "websocket" {
		return
	}
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	fmt.Fprint(buf, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")
	buf.Flush()
	_, _ = io.Copy(conn, buf)
}

const handshake = "GET /ws HTTP/1.1\r\nHost: example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
	"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"

func openTunnel(t testing.TB, conn net.Conn) *bufio.Reader {
	t.Helper()
	fmt.Fprint(conn, handshake)
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusSwitchingProtocols || res.Header.Get("Sec-WebSocket-Accept") == "" || res.Header.Get("X-Request-Id") == "" {
		t.Fatalf("%s, %v", res.Status, res.Header)
	}
	return in
}

// The slot of a tunnel is held until it ends; what passes is not taken for
// requests, however it looks.
func TestWebSocket(t *testing.T) {
	var log logBuffer
	g := start(t, Options{
		Gate: gateOf(t, `
version: 1
rules:
  - { name: sockets, match: /ws, per: everyone, concurrency: { slots: 1, lease: 30s } }
`),
		Upstreams: []*url.URL{serve(t, webSocket)}, AccessLog: log.access(),
	}, nil)
	conn := dial(t, g.addr)
	in := openTunnel(t, conn)
	frames := append([]byte{0x81, 0x05}, "hello"...)
	frames = append(frames, "\r\n\r\nPOST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"...)
	frames = append(frames, bytes.Repeat([]byte{0, 1, '\n', 254}, 50_000)...)
	go func() { _, _ = conn.Write(frames) }()
	echoed := make([]byte, len(frames))
	if _, err := io.ReadFull(in, echoed); err != nil || !bytes.Equal(echoed, frames) {
		t.Fatalf("echo differs, %v", err)
	}
	if res, _ := get(t, g.url+"/ws"); res.StatusCode != http.StatusTooManyRequests {
		t.Errorf("%s while the slot is taken", res.Status)
	}
	if n := g.InFlight(); n != 1 {
		t.Errorf("%d requests in flight, want 1", n)
	}
	conn.Close()
	soon(t, "the slot is free", func() bool {
		res, _ := get(t, g.url+"/ws")
		return res.StatusCode == http.StatusOK
	})
	soon(t, "nothing is in flight at the upstream", func() bool { return g.Upstreams()[0].InFlight == 0 })
	soon(t, "the tunnel is in the log", func() bool {
		for _, line := range log.lines() {
			if bytes.Contains([]byte(line), []byte(fmt.Sprintf(`"status":101,"sent":%d`, len(frames)))) {
				return true
			}
		}
		return false
	})
}

// What a client sends behind its handshake, without waiting for the answer, is for the
// upstream.
func TestWebSocketEarlyBytes(t *testing.T) {
	config, _ := certificate(t)
	for _, secure := range []bool{false, true} {
		var serving *tls.Config
		if secure {
			serving = config
		}
		g := start(t, Options{Upstreams: []*url.URL{serve(t, webSocket)}}, serving)
		for _, n := range []int{1, 2, 100, 4000, 4096, 5000, 100_000} {
			conn := dial(t, g.addr)
			if secure {
				conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
			}
			early := bytes.Repeat([]byte("GET /\n"), n/6+1)[:n]
			go func() { _, _ = conn.Write(append([]byte(handshake), early...)) }()
			in := bufio.NewReader(conn)
			res, err := http.ReadResponse(in, nil)
			if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
				t.Fatalf("%d bytes: %v, %v", n, res, err)
			}
			_, _ = conn.Write([]byte("late"))
			echoed := make([]byte, n+len("late"))
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			if got, err := io.ReadFull(in, echoed); err != nil || string(echoed) != string(early)+"late" {
				t.Errorf("%d bytes, TLS %v: %d came back, %v", n, secure, got, err)
			}
			conn.Close()
		}
	}
}

// The upstream's end of a tunnel ends it, even if the client stays.
func TestUpstreamEndsTunnel(t *testing.T) {
	t.Parallel()
	g := before(t, "", func(w http.ResponseWriter, _ *http.Request) {
		conn, buf, _ := http.NewResponseController(w).Hijack()
		fmt.Fprint(buf, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\nbye")
		buf.Flush()
		conn.Close()
	})
	conn := dial(t, g.addr)
	rest, err := io.ReadAll(openTunnel(t, conn))
	if err != nil || string(rest) != "bye" {
		t.Errorf("%q, %v", rest, err)
	}
	soon(t, "nothing is in flight", func() bool { return g.InFlight() == 0 })
}

// A tunnel is of the protocol that was asked for, however it is spelled, and either side can
// end its own half.
func TestTunnelHalves(t *testing.T) {
	g := before(t, "", func(w http.ResponseWriter, r *http.Request) {
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		fmt.Fprintf(buf, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: %s\r\nX-Request-Id: theirs\r\nContent-Length: 7\r\n\r\n", r.URL.Query().Get("to"))
		_ = buf.Flush()
		if r.URL.Query().Has("last") { // all of what the client sends comes before it
			all, _ := io.ReadAll(buf)
			_, _ = conn.Write(bytes.ToUpper(all))
			return
		}
		_, _ = io.WriteString(conn, "first")
		_ = conn.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, buf)
	})
	open := func(query string) (net.Conn, *bufio.Reader, *http.Response) {
		t.Helper()
		conn := dial(t, g.addr)
		fmt.Fprint(conn, strings.Replace(handshake, "/ws", "/ws?"+query, 1))
		in := bufio.NewReader(conn)
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		return conn, in, res
	}
	conn, in, res := open("to=WEBSOCKET&last")
	if ids := res.Header["X-Request-Id"]; res.StatusCode != 101 || len(ids) != 1 || ids[0] == "theirs" || res.Header.Get("Upgrade") != "WEBSOCKET" || res.Header.Get("Connection") != "upgrade" || res.Header.Get("Content-Length") != "" {
		t.Errorf("%s, %v", res.Status, res.Header)
	}
	fmt.Fprint(conn, "hello")
	_ = conn.(*net.TCPConn).CloseWrite()
	if all, err := io.ReadAll(in); string(all) != "HELLO" || err != nil {
		t.Errorf("after our end: %q, %v", all, err)
	}
	_, in, _ = open("to=websocket")
	if all, err := io.ReadAll(in); string(all) != "first" || err != nil {
		t.Errorf("after its end: %q, %v", all, err)
	}
	if _, _, res := open("to=chess"); res.StatusCode != http.StatusBadGateway {
		t.Errorf("another protocol: %s", res.Status)
	}
	soon(t, "nothing is in flight", func() bool { return g.InFlight() == 0 })
}

// An upstream that switches to what nobody asked for is not followed.
func TestUnaskedSwitch(t *testing.T) {
	g := before(t, "", func(w http.ResponseWriter, _ *http.Request) {
		conn, buf, _ := http.NewResponseController(w).Hijack()
		fmt.Fprint(buf, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
		buf.Flush()
		conn.Close()
	})
	if res, _ := get(t, g.url); res.StatusCode != http.StatusBadGateway {
		t.Errorf("%s, want 502", res.Status)
	}
}
