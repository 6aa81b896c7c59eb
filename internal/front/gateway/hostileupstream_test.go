package gateway

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// http2Client is a client that speaks nothing but HTTP/2, to anybody.
func http2Client(t testing.TB) *http.Client {
	t.Helper()
	tr := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true, DisableCompression: true, Protocols: new(http.Protocols)}
	tr.Protocols.SetHTTP2(true)
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// An answer means the same in however many parts it comes.
func TestAnswersInPieces(t *testing.T) {
	for _, a := range answers {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			p := newParrot(t, a.answer)
			for way, g := range eitherWay(t, p, "") {
				for _, method := range []string{"GET", "HEAD"} {
					request := method + " / HTTP/1.1\r\nHost: example.com\r\n\r\n"
					p.say(a.answer, 0)
					whole := heard(t, g, request)
					for _, piece := range []int{1, 2, 5, 1000, upstreamBuffer - 1, upstreamBuffer} {
						if len(a.answer)/piece > 2000 {
							continue
						}
						p.say(a.answer, piece)
						parts := heard(t, g, request)
						if broken := strings.Contains(whole, brokenOff) && strings.Contains(parts, brokenOff); parts != whole && !broken {
							t.Errorf("%s, %s: heard at once\n%s\nby %d bytes\n%s", way, method, whole, piece, parts)
						}
					}
				}
			}
		})
	}
}

// A client of HTTP/1.0 gets one answer and nothing before it. If that is not complete, the
// connection does not end as if it were.
func TestAnswersToHTTP10(t *testing.T) {
	for _, a := range answers {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			for way, g := range eitherWay(t, newParrot(t, a.answer), "") {
				conn := dial(t, g.addr)
				fmt.Fprint(conn, "GET / HTTP/1.0\r\nHost: example.com\r\n\r\n")
				raw, err := io.ReadAll(conn)
				if broken := a.hears == brokenOff; broken != (err != nil) {
					t.Errorf("%s: heard %.200q, then %v", way, raw, err)
				}
				if text := string(raw); strings.HasPrefix(text, "HTTP/1.0 1") || strings.Contains(text, "\nHTTP/1.") {
					t.Errorf("%s: more than an answer: %.200q", way, raw)
				}
			}
		})
	}
}

// The same in TLS, which has an end of its own.
func TestBrokenAnswersToHTTP10InTLS(t *testing.T) {
	config, _ := certificate(t)
	p := newParrot(t, five)
	g := start(t, Options{Upstreams: []*url.URL{parseURL(t, "http://"+p.Addr().String())}}, config)
	for _, a := range answers {
		conn, err := tls.Dial("tcp", g.addr, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		p.say(a.answer, 0)
		g.reclaim()
		fmt.Fprint(conn, "GET / HTTP/1.0\r\nHost: example.com\r\n\r\n")
		if raw, err := io.ReadAll(conn); (err != nil) != (a.hears == brokenOff) {
			t.Errorf("%s: heard %.200q, then %v", a.name, raw, err)
		}
		conn.Close()
	}
}

// An answer that breaks off does not look complete, in any version of HTTP.
func TestBrokenAnswersOverHTTP2(t *testing.T) {
	server, _ := certificate(t)
	secure := http2Client(t)
	for _, answer := range []string{okLine + "Content-Length: 9\r\n\r\nhello", okLine + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"} {
		g := start(t, Options{Upstreams: []*url.URL{parseURL(t, "http://"+newParrot(t, answer).Addr().String())}}, server)
		for _, method := range []string{"GET", "POST"} {
			res, err := secure.Do(newRequest(t, method, g.url, nil))
			if err != nil { // nothing of it had been sent
				continue
			}
			if body, err := io.ReadAll(res.Body); err == nil || res.ProtoMajor != 2 {
				t.Errorf("%s: %q looks complete", method, body)
			}
			res.Body.Close()
		}
	}
}

// endsItself reports whether a client knows where an answer ends, and may use its connection
// again.
func endsItself(answer, method string) bool {
	in := bufio.NewReader(strings.NewReader(answer))
	for {
		res, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil || res.StatusCode == http.StatusSwitchingProtocols {
			return false
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			return false
		}
		if res.StatusCode < 100 || res.StatusCode >= 200 {
			return !res.Close
		}
	}
}

// Nothing of an answer, nor what comes behind it, is taken for the answer to the next
// request on the connection.
func TestAnswersLeaveNothingForTheNextRequest(t *testing.T) {
	const poison = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"
	for _, a := range answers {
		if len(a.answer) > upstreamBuffer { // not all of it comes at once
			continue
		}
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			for _, method := range []string{"GET", "HEAD", "OPTIONS"} {
				if !endsItself(a.answer, method) {
					continue
				}
				for _, behind := range []string{"", poison, "\r\n", "x"} {
					up := newScripted(t, []string{a.answer + behind, five}, []string{five})
					s := up.transport(time.Minute)
					_, _ = askDirect(t.Context(), t, s, method, "/first")
					wantAnswer(t, s, "GET", "/second", "200 hello")
					if conns, heads := up.seen(); len(heads) != 2 || behind != "" && conns != 2 {
						t.Errorf("%s, with %q behind it: %d connections, requests %q", method, behind, conns, heads)
					}
					s.CloseIdleConnections()
				}
			}
		})
	}
}

// An upstream that sends 1xx responses without end gets no further than one whose head has no
// end.
func TestEndlessInterimAnswers(t *testing.T) {
	up := rawUpstream(t, func(conn net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
			return
		}
		hint := "HTTP/1.1 103 Early Hints\r\nLink: <" + strings.Repeat("a", 2000) + ">\r\n\r\n"
		for {
			if _, err := io.WriteString(conn, hint); err != nil {
				return
			}
		}
	})
	for way, g := range eitherWay(t, up, "") {
		for _, method := range []string{"GET", "POST"} {
			conn := dial(t, g.addr)
			fmt.Fprintf(conn, "%s / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 0\r\n\r\n", method)
			in, hints := bufio.NewReader(conn), 0
			for {
				res, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatal(err)
				}
				if res.StatusCode == http.StatusEarlyHints {
					hints++
					continue
				}
				if res.StatusCode != http.StatusBadGateway || hints == 0 || hints > maxResponseHead/2000 {
					t.Errorf("%s, %s: %s after %d hints", way, method, res.Status, hints)
				}
				break
			}
		}
	}
}

// Trailers of an upstream are passed on, announced or not, but for those that stand for a
// header that clients act on or that is ours.
func TestTrailersOfAnswers(t *testing.T) {
	good := []string{"X-Sum", "Grpc-Status", "Content-Digest", "Server-Timing", "Etag"}
	bad := []string{
		"Connection", "Keep-Alive", "Te", "Upgrade", "Proxy-Authenticate", "Set-Cookie", "Content-Type", "Content-Encoding", "Content-Range",
		"Authorization", "Cache-Control", "Host", "X-Request-Id", "If-Match",
	}
	unannounced := []string{"Content-Length", "Transfer-Encoding", "Trailer"} // net/http refuses an answer that announces these
	config, _ := certificate(t)
	clients := map[string]*http.Client{"HTTP/1": client, "HTTP/2": http2Client(t)}
	f := func(announce, send []string) {
		t.Helper()
		var b strings.Builder
		fmt.Fprint(&b, okLine, "Transfer-Encoding: chunked\r\n")
		if announce != nil {
			fmt.Fprintf(&b, "Trailer: %s\r\n", strings.Join(announce, ", "))
		}
		fmt.Fprint(&b, "\r\n5\r\nhello\r\n0\r\n")
		for _, name := range send {
			fmt.Fprintf(&b, "%s: 1\r\n", name)
		}
		fmt.Fprint(&b, "\r\n")
		upstreams := []*url.URL{parseURL(t, "http://"+newParrot(t, b.String()).Addr().String())}
		for version, c := range clients {
			g := start(t, Options{Upstreams: upstreams}, map[string]*tls.Config{"HTTP/2": config}[version])
			for _, method := range []string{"GET", "POST"} {
				g.reclaim()
				res, err := c.Do(newRequest(t, method, g.url, nil))
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(res.Body)
				res.Body.Close()
				maps.DeleteFunc(res.Trailer, func(_ string, values []string) bool { return len(values) == 0 })
				got, want := slices.Sorted(maps.Keys(res.Trailer)), slices.Sorted(slices.Values(good))
				if string(body) != "hello" || err != nil || !slices.Equal(got, want) {
					t.Errorf("%s over %s: %q, %v, trailers %q, want %q", method, version, body, err, got, want)
				}
			}
		}
	}
	f(good, good)
	f(nil, good)
	f(good[:2], good)
	f(slices.Concat(good, bad), slices.Concat(good, bad))
	f(nil, slices.Concat(bad, good, unannounced))
	f(good[1:], slices.Concat(unannounced, good, bad))
}

// An answer without content has no length, which clients of HTTP/2 would wait for, or refuse.
func TestNoContentHasNoLength(t *testing.T) {
	config, _ := certificate(t)
	for _, length := range []string{"0", "5", "100000"} {
		up := newParrot(t, "HTTP/1.1 204 No Content\r\nX-A: b\r\nContent-Length: "+length+"\r\n\r\n")
		upstreams := []*url.URL{parseURL(t, "http://"+up.Addr().String())}
		for _, g := range []running{start(t, Options{Upstreams: upstreams}, config), start(t, Options{Upstreams: upstreams}, nil)} {
			c := client
			if strings.HasPrefix(g.url, "https") {
				c = http2Client(t)
			}
			for _, method := range []string{"GET", "HEAD", "POST"} {
				g.reclaim()
				res, err := c.Do(newRequest(t, method, g.url, nil))
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
				if res.StatusCode != http.StatusNoContent || res.Header.Get("X-A") != "b" || res.Header.Get("Content-Length") != "" {
					t.Errorf("%s over %s: %s, %v", method, res.Proto, res.Status, res.Header)
				}
			}
		}
	}
}

// Whatever upstreams answer, nothing is left of it: no goroutine, no request, no connection
// that is not idle.
func TestAnswersLeaveNothingBehind(t *testing.T) {
	p := newParrot(t, five)
	gateways := eitherWay(t, p, "")
	for _, g := range gateways {
		heard(t, g, "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n")
	}
	goroutines := func() int {
		soon(t, "nothing is in flight", func() bool {
			for _, g := range gateways {
				g.reclaim()
				if g.InFlight() != 0 || g.Connections() != 0 || g.Upstreams()[0].InFlight != 0 {
					return false
				}
			}
			return true
		})
		return runtime.NumGoroutine()
	}
	before := goroutines()
	for _, a := range answers {
		p.say(a.answer, 0)
		for _, g := range gateways {
			for _, method := range []string{"GET", "HEAD", "POST"} {
				heard(t, g, method+" / HTTP/1.1\r\nHost: example.com\r\n\r\n")
			}
		}
	}
	soon(t, "no goroutine is left", func() bool { return goroutines() <= before })
}

// FuzzAnswersEitherWay holds the two ways to an upstream to each other, whatever that answers
// and in however many parts.
func FuzzAnswersEitherWay(f *testing.F) {
	for i, a := range answers {
		if len(a.answer) < 10_000 {
			f.Add([]byte(a.answer), byte(10*i), byte(i))
		}
	}
	p := newParrot(f, five)
	gateways := eitherWay(f, p, "")
	methods := []string{"GET", "HEAD", "OPTIONS"}
	f.Fuzz(func(t *testing.T, answer []byte, piece, method byte) {
		if piece > 0 && len(answer)/int(piece) > 200 {
			piece = 0
		}
		p.say(string(answer), int(piece))
		request := methods[int(method)%len(methods)] + " / HTTP/1.1\r\nHost: example.com\r\n\r\n"
		direct, transport := heard(t, gateways["direct"], request), heard(t, gateways["transport"], request)
		if broken := strings.Contains(direct, brokenOff) && strings.Contains(transport, brokenOff); direct != transport && !broken {
			t.Errorf("%q: heard directly\n%s\nthrough http.Transport\n%s", answer, direct, transport)
		}
	})
}
