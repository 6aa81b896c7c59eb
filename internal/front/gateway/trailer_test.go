package gateway

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// trailed is an upstream that keeps which trailers were announced, and which came.
type trailed struct {
	mu              sync.Mutex
	announced, came []string
}

func (u *trailed) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	announced := slices.Sorted(maps.Keys(r.Trailer))
	_, _ = io.Copy(io.Discard, r.Body)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.announced, u.came = announced, slices.Sorted(maps.Keys(r.Trailer))
}

func (u *trailed) got() (announced, came string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return strings.Join(u.announced, " "), strings.Join(u.came, " ")
}

// A trailer says nothing that rules, or the gateway, would have looked at in a header.
func TestTrailersSayNothingOfTheClient(t *testing.T) {
	config, pool := certificate(t)
	u := new(trailed)
	plain := httptest.NewServer(u)
	t.Cleanup(plain.Close)
	secure := httptest.NewUnstartedServer(u)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	t.Cleanup(secure.Close)
	send1 := func(g running, names []string) {
		conn := dial(t, g.addr)
		defer conn.Close()
		fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: example.com\r\nConnection: close, X-Hop\r\nTransfer-Encoding: chunked\r\nTrailer: %s\r\n\r\n4\r\nbody\r\n0\r\n", strings.Join(names, ", "))
		for _, name := range append(names, "X-Unannounced") {
			fmt.Fprintf(conn, "%s: forged\r\n", name)
		}
		fmt.Fprint(conn, "\r\n")
		if res, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", res, err)
		}
	}
	send2 := func(g running, names []string) {
		c := dialH2Wire(t, g.addr)
		var trailer []string
		for _, name := range append(names, "X-Unannounced") {
			trailer = append(trailer, strings.ToLower(name), "forged")
		}
		c.send("POST", "/", []string{"trailer", strings.ToLower(strings.Join(names, ","))}, "body", trailer...)
		if _, ok := c.answered(); !ok {
			t.Fatal("not answered")
		}
	}
	f := func(name string, upstream *httptest.Server, serving *tls.Config, send func(running, []string)) {
		t.Run(name, func(t *testing.T) {
			g := start(t, Options{
				Upstreams:   []*url.URL{parseURL(t, upstream.URL)},
				Transport:   Transport{TLS: &tls.Config{RootCAs: pool}},
				ReadsHeader: func(name string) bool { return name == "X-Api-Key" },
			}, serving)
			bad := []string{
				"X-Forwarded-For", "X-Forwarded-Foo", "Forwarded", "X-Real-Ip", "X-Request-Id", "X_Real_IP", "Authorization", "Cookie", "X-Api-Key", "X_Api_Key",
				"Content-Type", "Content-Encoding", "If-Match", "Keep-Alive", "Upgrade", "Te", "Host", "Connection",
			}
			if serving == nil {
				bad = append(bad, "X-Hop") // Connection names it, which HTTP/2 does not have
			}
			for _, name := range bad {
				send(g, []string{name})
				if announced, came := u.got(); announced != "" || came != "" {
					t.Errorf("%s: announced %q, came %q", name, announced, came)
				}
			}
			if serving != nil { // net/http ends streams with some of the others
				bad = slices.DeleteFunc(bad, func(name string) bool { return name[0] != 'X' && name != "Forwarded" && name != "Cookie" })
			}
			send(g, append([]string{"X-Sum", "Grpc-Status"}, bad...))
			if announced, came := u.got(); announced != "Grpc-Status X-Sum" || came != announced {
				t.Errorf("announced %q, came %q", announced, came)
			}
		})
	}
	f("HTTP/1.1 to HTTP/1.1", plain, nil, send1)
	f("HTTP/1.1 to HTTP/2", secure, nil, send1)
	f("HTTP/2 to HTTP/1.1", plain, config, send2)
	f("HTTP/2 to HTTP/2", secure, config, send2)
}

// In HTTP/2 a body whose length was said may have trailers as well: it ends with them, not with its last byte.
func TestTrailersAfterALength(t *testing.T) {
	config, pool := certificate(t)
	came := make(chan string, 1)
	upstream := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		came <- fmt.Sprintf("%q, %v, %v", body, err, r.Trailer)
	}))
	upstream.EnableHTTP2 = true
	upstream.StartTLS()
	t.Cleanup(upstream.Close)
	g := start(t, Options{Upstreams: []*url.URL{parseURL(t, upstream.URL)}, Transport: Transport{TLS: &tls.Config{RootCAs: pool}}}, config)
	c := dialH2Wire(t, g.addr)
	c.send("POST", "/", []string{"content-length", "4", "trailer", "x-sum"}, "body", "x-sum", "5")
	if _, ok := c.answered(); !ok {
		t.Fatal("not answered")
	}
	if got, want := <-came, `"body", <nil>, map[X-Sum:[5]]`; got != want {
		t.Errorf("the upstream got %s, want %s", got, want)
	}
}
