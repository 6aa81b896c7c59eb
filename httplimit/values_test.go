package httplimit

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"net/http/httptest"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

func TestValues(t *testing.T) {
	direct, behind := ClientIP{}, ClientIP{Trusted: prefixes("10.0.0.0/8")}
	f := func(c ClientIP, name string, change func(*http.Request), want string) {
		t.Helper()
		r := from("10.0.0.1:99")
		change(r)
		got, ok := (&values{request: r, client: &c}).Value(name)
		if got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v, want %q", name, got, ok, want)
		}
	}
	remote := func(addr string) func(*http.Request) { return func(r *http.Request) { r.RemoteAddr = addr } }
	header := func(name string, lines ...string) func(*http.Request) {
		return func(r *http.Request) { r.Header[name] = lines }
	}
	f(direct, "addr", remote("192.0.2.1:80"), "192.0.2.1")
	f(direct, "addr", remote("[2001:db8:1:2::7]:80"), "2001:db8:1:2::7")
	f(direct, "addr", remote("[fe80::1%eth0]:80"), "fe80::1")
	f(direct, "addr", remote("[::ffff:192.0.2.1]:80"), "192.0.2.1")
	f(direct, "addr", remote("@"), "")
	f(ClientIP{IPv4Bits: 8, IPv6Bits: 16}, "addr", remote("192.0.2.1:80"), "192.0.2.1")
	f(direct, "addr", header("X-Forwarded-For", "192.0.2.7"), "10.0.0.1")
	f(behind, "addr", header("X-Forwarded-For", "203.0.113.9, 192.0.2.7"), "192.0.2.7")

	basic := func(user, password string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth(user, password) }
	}
	f(direct, "basic.user", basic("alice", "x:y"), "alice")
	f(direct, "basic.user", basic("", "x"), "")
	f(direct, "basic.user", header("Authorization", "Basic !"), "")
	f(direct, "basic.user", header("Authorization", "Bearer YTpi"), "")
	f(direct, "basic.user", func(*http.Request) {}, "")
	f(direct, "basic.password", basic("alice", "x"), "")

	f(direct, "client header X-Key", header("X-Key", "first"), "first")
	f(behind, "header X-Key", header("X-Key", "first"), "first")
	f(direct, "header X-Key", header("X-Key", "first"), "")
	f(direct, "client header X-Key", header("X-Key", "", "second"), "")
	f(direct, "cookie id", header("Cookie", "a=1; id=2; id=3"), "")
	f(direct, "cookie id", header("Cookie", "a=1", "id=2"), "2")
	f(direct, "cookie id", header("Cookie", `id="2"`), "2")
	f(direct, "cookie ID", header("Cookie", "id=2"), "")
	f(direct, "cookie id", header("Cookie", "id="), "")

	named := []*x509.Certificate{{Subject: pkix.Name{CommonName: "device-7"}}}
	state := func(s tls.ConnectionState) func(*http.Request) { return func(r *http.Request) { r.TLS = &s } }
	f(direct, "tls.client_cn", state(tls.ConnectionState{PeerCertificates: named}), "")
	f(direct, "tls.client_cn", state(tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{named}}), "device-7")
	f(direct, "tls.client_cn", state(tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{}}}), "")
	f(direct, "tls.client_cn", state(tls.ConnectionState{}), "")
	twice := pkix.Name{}
	twice.FillFromRDNSequence(&pkix.RDNSequence{
		{{Type: []int{2, 5, 4, 3}, Value: "device-8"}}, {{Type: []int{2, 5, 4, 3}, Value: "device-7"}},
	})
	f(direct, "tls.client_cn", state(tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{Subject: twice}}}}), "")
	f(direct, "tls.client_cn", func(*http.Request) {}, "")
	f(direct, "tls.client_org", state(tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{named}}), "")
}

// A certificate that the server only asked for could be anybody's.
func TestClientCertificatesCountOnceVerified(t *testing.T) {
	authority := testdep.NewCertificate(t, "authority", nil)
	known, forged := testdep.NewCertificate(t, "device-7", authority), testdep.NewCertificate(t, "device-7", nil)

	f := func(auth tls.ClientAuthType, cert *testdep.Certificate, want string) {
		t.Helper()
		srv := httptest.NewUnstartedServer(asks(hello, "tls.client_cn"))
		srv.TLS = &tls.Config{ClientAuth: auth, ClientCAs: authority.Pool()}
		srv.StartTLS()
		defer srv.Close()
		transport := srv.Client().Transport.(*http.Transport)
		if cert != nil {
			// Not Certificates: of those, none is sent that the server will not like.
			transport.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				own := cert.TLS()
				return &own, nil
			}
		}
		transport.TLSClientConfig.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		for range 2 { // the second resumes the session of the first
			res, err := srv.Client().Get(srv.URL)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			if got := res.Header.Get("Found"); got != want {
				t.Errorf("%s: %q, want %q", auth, got, want)
			}
			transport.CloseIdleConnections()
		}
	}
	f(tls.VerifyClientCertIfGiven, known, "device-7")
	f(tls.RequireAndVerifyClientCert, known, "device-7")
	f(tls.VerifyClientCertIfGiven, nil, "")
	f(tls.RequestClientCert, known, "")
	f(tls.RequireAnyClientCert, forged, "")
}
