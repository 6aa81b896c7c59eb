package gateway

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"testing"
)

func TestForwarding(t *testing.T) {
	f := func(remote, host string, secure, trusted bool, in, want http.Header) {
		t.Helper()
		r := &http.Request{RemoteAddr: remote, Host: host, Header: in}
		if secure {
			r.TLS = new(tls.ConnectionState)
		}
		x := &exchange{trusted: trusted}
		x.record.ID = "id"
		h := newHead(r, x)
		out := h.header()
		for name, values := range want {
			if got := out[name]; len(got) != len(values) || len(got) > 0 && got[0] != values[0] {
				t.Errorf("%s from %s: %q, want %q", name, remote, got, values)
			}
		}
	}
	f("[2001:db8::1]:80", "a:8080", true, false, nil, http.Header{
		"X-Forwarded-For": {"2001:db8::1"}, "X-Forwarded-Host": {"a:8080"}, "X-Forwarded-Proto": {"https"},
		"Forwarded": {`for="[2001:db8::1]";host="a:8080";proto=https`}, "X-Request-Id": {"id"},
	})
	f("[fe80::1%eth0]:80", "a", false, false, nil, http.Header{"X-Forwarded-For": {"fe80::1"}})
	// On a Unix socket there is no address to tell.
	f("@", "a", false, false, http.Header{"X-Forwarded-For": {"192.0.2.1"}}, http.Header{"X-Forwarded-For": nil, "Forwarded": {"for=unknown;host=a;proto=http"}})
	f("@", "a", false, true, http.Header{"X-Forwarded-For": {"192.0.2.1"}}, http.Header{"X-Forwarded-For": {"192.0.2.1"}})
	f("10.0.0.1:1", "a", false, true, http.Header{"X_real_ip": {"192.0.2.1"}, "X-Real-Ip": {"192.0.2.2"}},
		http.Header{"X_real_ip": nil, "X-Real-Ip": {"192.0.2.2"}, "X-Forwarded-For": {"10.0.0.1"}})
	f("10.0.0.1:1", "a", true, true, http.Header{"X-Forwarded-Proto": {"http", "https"}}, http.Header{"X-Forwarded-Proto": {"https"}})
}

// A proxy of our own on a Unix socket is believed where that is said.
func TestUnixSocket(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Upstreams: []*url.URL{serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Seen", r.Header.Get("X-Forwarded-For"))
	})}}
	o.HTTP.ClientIP.TrustUnix = true
	g, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	go func() { _ = g.Serve(l, nil) }()
	c := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", l.Addr().String())
	}}}
	defer c.CloseIdleConnections()
	r := newRequest(t, http.MethodGet, "http://example.com/", nil)
	r.Header.Set("X-Forwarded-For", "192.0.2.1")
	r.Header.Set("X-Request-Id", "given")
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.Header.Get("X-Seen") != "192.0.2.1" || res.Header.Get("X-Request-Id") != "given" {
		t.Errorf("the upstream saw %q, the id is %q", res.Header.Get("X-Seen"), res.Header.Get("X-Request-Id"))
	}
}
