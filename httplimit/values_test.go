package httplimit

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
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
	authority, authorityKey := certificate(t, "authority", nil, nil)
	known, knownKey := certificate(t, "device-7", authority, authorityKey)
	forged, forgedKey := certificate(t, "device-7", nil, nil)
	authorities := x509.NewCertPool()
	authorities.AddCert(authority)

	f := func(auth tls.ClientAuthType, cert *x509.Certificate, key *ecdsa.PrivateKey, want string) {
		t.Helper()
		srv := httptest.NewUnstartedServer(asks(hello, "tls.client_cn"))
		srv.TLS = &tls.Config{ClientAuth: auth, ClientCAs: authorities}
		srv.StartTLS()
		defer srv.Close()
		transport := srv.Client().Transport.(*http.Transport)
		if cert != nil {
			// Not Certificates: of those, none is sent that the server will not like.
			transport.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				return &tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}, nil
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
	f(tls.VerifyClientCertIfGiven, known, knownKey, "device-7")
	f(tls.RequireAndVerifyClientCert, known, knownKey, "device-7")
	f(tls.VerifyClientCertIfGiven, nil, nil, "")
	f(tls.RequestClientCert, known, knownKey, "")
	f(tls.RequireAnyClientCert, forged, forgedKey, "")
}

// certificate is signed by parent, or by itself.
func certificate(t *testing.T, name string, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if parent == nil {
		template.IsCA, template.BasicConstraintsValid = true, true
		parent, parentKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}
