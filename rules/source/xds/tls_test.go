package xds

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// authority issues certificates for tests.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t}
	der, key := a.sign(&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil)
	a.key = key
	var err error
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *authority) sign(c *x509.Certificate, parent *x509.Certificate) ([]byte, *ecdsa.PrivateKey) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber = big.NewInt(time.Now().UnixNano())
	c.Subject = pkix.Name{CommonName: "test"}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	signer := a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	return der, key
}

// issue returns a certificate for a name, and writes it to files.
func (a *authority) issue(name, certFile, keyFile string) tls.Certificate {
	der, key := a.sign(&x509.Certificate{DNSNames: []string{name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}, a.cert)
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	private := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})
	a.write(certFile, cert)
	a.write(keyFile, private)
	pair, err := tls.X509KeyPair(cert, private)
	if err != nil {
		a.t.Fatal(err)
	}
	return pair
}

func (a *authority) write(file string, text []byte) {
	if err := os.WriteFile(file, text, 0o600); err != nil {
		a.t.Fatal(err)
	}
}

func (a *authority) writeCA(file string) {
	a.write(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}))
}

// secured is a control plane that asks for certificates of an authority.
func (a *authority) secured(name string) credentials.TransportCredentials {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	dir := a.t.TempDir()
	return credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{a.issue(name, filepath.Join(dir, "c"), filepath.Join(dir, "k"))},
		ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: pool, MinVersion: tls.VersionTLS13,
	})
}

// Both sides show certificates, and files that were replaced are read for the next connection.
func TestTLS(t *testing.T) {
	old, renewed := newAuthority(t), newAuthority(t)
	dir := t.TempDir()
	ca, cert, key := filepath.Join(dir, "ca"), filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	old.writeCA(ca)
	old.issue("client", cert, key)
	p := newPlane(t, "127.0.0.1:0", old.secured("envoy-gateway"))
	p.serve("1", config("a", "k"))
	with := func(c TLS) func(*Options) { return func(o *Options) { o.TLS = &c } }
	fails := func(want string, edit func(*Options)) {
		t.Helper()
		w := follow(t, p.address(), edit)
		testdep.Eventually(t, want, func() bool { return strings.Contains(w.Status().Error, want) })
		if w.Set() != nil {
			t.Errorf("%s: there are rules", want)
		}
	}
	fails("certificate", with(TLS{CA: ca, Cert: cert, Key: key})) // its name is not 127.0.0.1
	fails("certificate", with(TLS{CA: ca, Name: "envoy-gateway"}))
	fails("certificate", with(TLS{Cert: cert, Key: key, Name: "envoy-gateway"}))
	fails("no such file", with(TLS{CA: ca + "x", Name: "envoy-gateway"}))
	fails("no certificate in PEM", with(TLS{CA: key, Name: "envoy-gateway"}))
	fails("no such file", with(TLS{CA: ca, Cert: cert, Key: key + "x", Name: "envoy-gateway"}))
	fails("control plane", func(*Options) {}) // plain text

	at := socket(t) // a port might be somebody else's after the restart
	p = newPlane(t, at, old.secured("envoy-gateway"))
	p.serve("1", config("a", "k"))
	w := follow(t, at, with(TLS{CA: ca, Cert: cert, Key: key, Name: "envoy-gateway"}))
	await(t, w)
	p.grpc.Stop()
	renewed.writeCA(ca)
	renewed.issue("client", cert, key)
	p = newPlane(t, at, renewed.secured("envoy-gateway"))
	p.serve("1", config("b", "k"))
	testdep.Eventually(t, "rules over a renewed certificate", func() bool { return limited(w.Set(), "b", "k") != "" })
}
