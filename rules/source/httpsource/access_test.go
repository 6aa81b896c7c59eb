package httpsource

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

func write(t *testing.T, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// The token is read again for every request, and its mistakes are told.
func TestTokenFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if _, err := New(Options{URL: "http://h/x", TokenFile: file}); err == nil || !strings.Contains(err.Error(), "token for h") {
		t.Errorf("without a file: %v", err)
	}
	for _, text := range []string{"", " \n", "a b", "a\nb", "a\x00b", "é"} {
		write(t, file, []byte(text))
		if _, err := New(Options{URL: "http://h/x", TokenFile: file}); err == nil || text != "" && strings.Contains(err.Error(), text+":") {
			t.Errorf("with %q: %v", text, err)
		}
	}
	site := newSite(t, map[string]string{"/rules.yaml": rule("1/second")})
	var want atomic.Value
	want.Store("Bearer first")
	site.setHook(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == want.Load() {
			return false
		}
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	write(t, file, []byte("first\n"))
	s := site.source("/rules.yaml", func(o *Options) { o.TokenFile = file })
	b := next(t, s, "")
	want.Store("Bearer second")
	fails(t, s, b.Revision, "401")
	write(t, file, []byte("second\r\n"))
	site.set("/rules.yaml", rule("2/second"))
	next(t, s, b.Revision)
}

// A redirect is followed, and the token does not go along to another host, port or scheme.
func TestRedirects(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write(t, file, []byte("hush"))
	other := newSite(t, map[string]string{"/rules.yaml": rule("2/second")})
	other.setHook(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") != "" {
			t.Error("another host got the token")
		}
		return false
	})
	site := newSite(t, map[string]string{"/new/rules.yaml": rule("1/second")})
	var to atomic.Value
	to.Store("/new/rules.yaml")
	site.setHook(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") != "Bearer hush" {
			t.Errorf("%s: Authorization: %q", r.URL, r.Header.Get("Authorization"))
		}
		if r.URL.Path == "/rules.yaml" {
			http.Redirect(w, r, to.Load().(string), http.StatusTemporaryRedirect)
			return true
		}
		return false
	})
	s := site.source("/rules.yaml", func(o *Options) { o.TokenFile = file })
	b := next(t, s, "")
	if string(b.Files["rules.yaml"]) != rule("1/second") {
		t.Errorf("%+v", b)
	}
	to.Store(other.URL + "/rules.yaml")
	if b = next(t, s, ""); string(b.Files["rules.yaml"]) != rule("2/second") {
		t.Errorf("%+v", b)
	}
	// localhost is another name, even where it is the same server.
	to.Store(strings.Replace(other.URL, "127.0.0.1", "localhost", 1) + "/rules.yaml")
	next(t, s, "")
	to.Store("http://bob:secret@" + other.Listener.Addr().String() + "/rules.yaml")
	fails(t, s, "", "password")
}

// secure is a site that speaks TLS, and asks for certificates of authority if that is given.
func secure(t *testing.T, s *site, server, authority *testdep.Certificate) *httptest.Server {
	t.Helper()
	is := httptest.NewUnstartedServer(s)
	is.TLS = &tls.Config{Certificates: []tls.Certificate{server.TLS()}}
	is.EnableHTTP2 = true
	if authority != nil {
		is.TLS.ClientCAs, is.TLS.ClientAuth = authority.Pool(), tls.RequireAndVerifyClientCert
	}
	is.StartTLS()
	t.Cleanup(is.Close)
	return is
}

// The server is verified, it verifies this client, and files that are replaced count from the
// next request on.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	ca, foreign := testdep.NewCertificate(t, "ca", nil), testdep.NewCertificate(t, "foreign", nil)
	client := testdep.NewCertificate(t, "gateway-1", ca)
	site := newSite(t, map[string]string{"/rules.yaml": rule("1/second")})
	server := secure(t, site, testdep.NewCertificate(t, "server", ca), ca)
	write(t, in("ca.pem"), []byte(ca.PEM()))
	write(t, in("cert.pem"), []byte(client.PEM()))
	write(t, in("key.pem"), []byte(client.KeyPEM(t)))
	all := func(o *Options) { o.CA, o.Cert, o.Key = in("ca.pem"), in("cert.pem"), in("key.pem") }
	url := server.URL + "/rules.yaml"

	fails(t, open(t, url), "", "certificate")
	fails(t, open(t, url, func(o *Options) { o.CA = in("ca.pem") }), "", url) // the server wants a certificate
	s := open(t, url, all)
	b := next(t, s, "")
	site.mu.Lock()
	r := site.asked[len(site.asked)-1]
	site.mu.Unlock()
	if r.ProtoMajor != 2 || r.TLS.PeerCertificates[0].Subject.CommonName != "gateway-1" {
		t.Errorf("HTTP/%d, certificate of %s", r.ProtoMajor, r.TLS.PeerCertificates[0].Subject)
	}
	write(t, in("ca.pem"), []byte(foreign.PEM()))
	fails(t, s, b.Revision, "certificate")
	write(t, in("ca.pem"), []byte("nothing"))
	fails(t, s, b.Revision, "no certificate in PEM", "ca.pem")
	write(t, in("ca.pem"), []byte(ca.PEM()))
	write(t, in("key.pem"), []byte(foreign.KeyPEM(t)))
	fails(t, s, b.Revision, "certificate to show")
	write(t, in("key.pem"), []byte(client.KeyPEM(t)))
	site.set("/rules.yaml", rule("2/second"))
	next(t, s, b.Revision)
	for _, o := range []Options{{CA: in("none")}, {Cert: in("none"), Key: in("key.pem")}, {Cert: in("cert.pem"), Key: in("ca.pem")}} {
		o.URL = url
		if _, err := New(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

// Whoever can be asked by https is not left for http.
func TestRedirectToPlainHTTP(t *testing.T) {
	ca := testdep.NewCertificate(t, "ca", nil)
	file := filepath.Join(t.TempDir(), "ca.pem")
	write(t, file, []byte(ca.PEM()))
	plain := newSite(t, map[string]string{"/rules.yaml": rule("1/second")})
	site := newSite(t, nil)
	site.setHook(func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, plain.URL+"/rules.yaml", http.StatusFound)
		return true
	})
	server := secure(t, site, testdep.NewCertificate(t, "server", ca), nil)
	fails(t, open(t, server.URL+"/rules.yaml", func(o *Options) { o.CA = file }), "", "not https")
	if n := len(plain.paths()); n != 0 {
		t.Errorf("the other was asked %d times", n)
	}
}
