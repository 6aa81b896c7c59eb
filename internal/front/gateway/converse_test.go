package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/rawh2"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// echoUpstream answers every part of a body as it comes.
func echoUpstream(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).EnableFullDuplex()
	buf := make([]byte, 1<<10)
	for {
		n, err := r.Body.Read(buf)
		_, _ = w.Write(buf[:n])
		_ = http.NewResponseController(w).Flush()
		if err != nil {
			return
		}
	}
}

// Both sides of a conversation may be silent for longer than a stall, as long as limits.tunnel
// says and no longer; whoever announced a length, or is in the middle of a chunk, may not.
func TestSilenceInAConversation(t *testing.T) {
	t.Parallel()
	testdep.Undisturbed(t, brief/4, func(t testing.TB) {
		server, _ := certificate(t)
		upstreams := []*url.URL{serve(t, echoUpstream)}
		long := start(t, Options{Upstreams: upstreams, Limits: Limits{Stall: brief}}, nil)
		short := start(t, Options{Upstreams: upstreams, Limits: Limits{Stall: brief, Tunnel: lenient}}, nil)
		longTLS := start(t, Options{Upstreams: upstreams, Limits: Limits{Stall: brief}}, server)
		shortTLS := start(t, Options{Upstreams: upstreams, Limits: Limits{Stall: brief, Tunnel: lenient}}, server)

		// HTTP/1.
		for _, g := range []running{long, short} {
			conn := dial(t, g.addr)
			fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			part := make([]byte, 5)
			for range 4 {
				if _, err := io.ReadFull(res.Body, part); err != nil || string(part) != "hello" {
					t.Fatalf("%q, %v", part, err)
				}
				time.Sleep(2 * brief)
				fmt.Fprint(conn, "5\r\nhello\r\n")
			}
		}
		// HTTP/2.
		c := rawh2.Dial(t, shortTLS.addr, 1<<16)
		s := c.Request("POST", "/", false)
		for i := range 4 {
			c.Body(s, []byte("hello"), false)
			soon(t, "it is echoed", func() bool { _, n, _, _ := c.Received(s); return n == 5*(i+1) })
			time.Sleep(2 * brief)
		}
		kept := rawh2.Dial(t, longTLS.addr, 1<<16)
		k := kept.Request("POST", "/", false)
		kept.Body(k, []byte("hello"), false)

		soon(t, "what is silent for longer is over", func() bool { return c.Over(s) && short.Connections() == 0 })
		if kept.Over(k) || long.Connections() != 1 {
			t.Error("a conversation ended before its time")
		}

		// These owe something.
		d := rawh2.Dial(t, longTLS.addr, 1<<16)
		upload := d.Request("POST", "/", false, "content-length", "1000")
		d.Body(upload, []byte("hello"), false)
		for _, sent := range []string{"Content-Length: 1000\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n5\r\nhe"} {
			fmt.Fprint(dial(t, long.addr), "POST / HTTP/1.1\r\nHost: example.com\r\n"+sent)
		}
		soon(t, "the uploads are over", func() bool { return d.Over(upload) && long.Connections() == 1 })
	})
}

// A tunnel ends when both sides have been silent for limits.tunnel; what either says counts.
func TestSilentTunnel(t *testing.T) {
	t.Parallel()
	testdep.Undisturbed(t, lenient/8, func(t testing.TB) {
		talk := make(chan bool)
		upstream := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			conn, buf, err := http.NewResponseController(w).Hijack()
			if err != nil {
				panic(err)
			}
			defer conn.Close()
			fmt.Fprint(buf, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n")
			buf.Flush()
			for range talk {
				fmt.Fprint(buf, "x")
				buf.Flush()
			}
			_, _ = io.Copy(io.Discard, conn)
		})
		g := start(t, Options{Upstreams: []*url.URL{upstream}, Limits: Limits{Stall: brief, Tunnel: lenient}}, nil)
		conn := dial(t, g.addr)
		in := openTunnel(t, conn)
		for range 6 { // the upstream talks, for longer than the limit in all
			time.Sleep(lenient / 5)
			talk <- true
			if _, err := in.ReadByte(); err != nil {
				t.Fatal(err)
			}
		}
		close(talk)
		for range 6 { // the client does
			time.Sleep(lenient / 5)
			fmt.Fprint(conn, "x")
		}
		if g.InFlight() != 1 {
			t.Error("the tunnel ended while somebody talked")
		}
		soon(t, "the silent tunnel is over", func() bool { return g.InFlight() == 0 && g.Connections() == 0 })
	})
}

// What the upstream says counts in a conversation over HTTP/2 as well, however little it is.
func TestUpstreamTalksToASilentStream(t *testing.T) {
	t.Parallel()
	testdep.Undisturbed(t, brief/4, func(t testing.TB) {
		server, _ := certificate(t)
		g := start(t, Options{
			Upstreams: []*url.URL{serve(t, func(w http.ResponseWriter, r *http.Request) {
				_ = http.NewResponseController(w).EnableFullDuplex()
				for range 8 {
					_, _ = io.WriteString(w, "x")
					_ = http.NewResponseController(w).Flush()
					time.Sleep(lenient / 6)
				}
				_, _ = io.Copy(io.Discard, r.Body)
			})},
			Limits: Limits{Stall: brief, Tunnel: lenient},
		}, server)
		c := rawh2.Dial(t, g.addr, 1<<16)
		s := c.Request("POST", "/", false)
		c.Body(s, []byte("hello"), false)
		soon(t, "all is said", func() bool { _, n, _, _ := c.Received(s); return n == 8 || c.Over(s) })
		if _, n, _, _ := c.Received(s); n != 8 {
			t.Errorf("the stream ended after %d words", n)
		}
		soon(t, "the silent stream is over", func() bool { return c.Over(s) && g.InFlight() == 0 })
	})
}
