package gateway

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// secure is a gateway that speaks TLS on both sides, and a client for it.
func secure(t *testing.T, http2 bool, upstream http.HandlerFunc) (running, *http.Client) {
	t.Helper()
	s := httptest.NewUnstartedServer(upstream)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	config, pool := certificate(t)
	upstreams := x509.NewCertPool()
	upstreams.AddCert(s.Certificate())
	g := start(t, Options{
		Gate: gateOf(t, wireRules), Upstreams: []*url.URL{parseURL(t, s.URL)},
		Transport: Transport{TLS: &tls.Config{RootCAs: upstreams}},
	}, config)
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: http2, Protocols: new(http.Protocols)}
	tr.Protocols.SetHTTP2(http2)
	tr.Protocols.SetHTTP1(!http2)
	t.Cleanup(tr.CloseIdleConnections)
	return g, &http.Client{Transport: tr}
}

func TestHTTP2BothSides(t *testing.T) {
	g, c := secure(t, true, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		fmt.Fprintf(w, "%s %s %s %s", r.Proto, r.Host, r.Header.Get("X-Forwarded-Proto"), r.Header.Get("Forwarded"))
		_ = http.NewResponseController(w).Flush()
		n, _ := io.Copy(w, r.Body)
		w.Header().Set("X-Sum", fmt.Sprint(n))
	})
	r := newRequest(t, http.MethodPost, g.url+"/a", io.LimitReader(zeroReader{}, 1<<20))
	r.Host = "example.com"
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	want := "HTTP/2.0 example.com https for=127.0.0.1;host=example.com;proto=https"
	if res.Proto != "HTTP/2.0" || !strings.HasPrefix(string(body), want) || len(body) != len(want)+1<<20 || res.Trailer.Get("X-Sum") != "1048576" {
		t.Errorf("%s, %d bytes, trailer %v, %.200q", res.Proto, len(body), res.Trailer, body)
	}
	for i, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
		res, err := c.Get(g.url + "/limited")
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("request %d: %s, want %d", i+1, res.Status, want)
		}
	}
	for path, want := range map[string]int{"/a%2Fb": 400, "/denied/": 403, "/x/%2e%2e/y": 400} {
		r := newRequest(t, http.MethodGet, g.url, nil)
		r.URL.Opaque = path
		res, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: %s, want %d", path, res.Status, want)
		}
	}
}

// HTTP/1 in TLS is followed like HTTP/1 without.
func TestHTTP1InTLS(t *testing.T) {
	g, c := secure(t, false, echo)
	res, err := c.Get(g.url + "/a")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(res.Body)
	res.Body.Close()
	if res.Proto != "HTTP/1.1" || !strings.HasPrefix(string(body), "GET /a") {
		t.Errorf("%s %q", res.Proto, body)
	}
	conn, err := tls.Dial("tcp", g.addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprint(conn, "POST /a HTTP/1.1\r\nHost: example.com\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
	res, err = http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusBadRequest {
		t.Errorf("two lengths: %s, want 400", res.Status)
	}
}

// A WebSocket in TLS, to an upstream that would rather speak HTTP/2.
func TestWebSocketInTLS(t *testing.T) {
	g, _ := secure(t, false, webSocket)
	conn, err := tls.Dial("tcp", g.addr, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	in := openTunnel(t, conn)
	fmt.Fprint(conn, "hello")
	got := make([]byte, 5)
	if _, err := io.ReadFull(in, got); err != nil || string(got) != "hello" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestPlainHTTPToTLS(t *testing.T) {
	g, _ := secure(t, false, hello)
	conn := dial(t, g.addr)
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusBadRequest || !strings.Contains(string(body), "HTTPS") {
		t.Errorf("%s %q", res.Status, body)
	}
}

// A certificate that is not trusted: nothing is sent, and the client learns no
// more than that.
func TestUntrustedUpstream(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(hello))
	defer s.Close()
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	g := start(t, Options{Upstreams: []*url.URL{parseURL(t, s.URL)}}, nil)
	res, body := get(t, g.url)
	if res.StatusCode != http.StatusBadGateway || strings.Contains(body, "x509") {
		t.Errorf("%s %s", res.Status, body)
	}
}
