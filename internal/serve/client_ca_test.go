//go:build unix

package serve

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// device is a client with a certificate, or without.
func device(cert *tls.Certificate, http2 bool) *http.Client {
	c := &tls.Config{InsecureSkipVerify: true, ClientSessionCache: tls.NewLRUClientSessionCache(4)}
	if cert != nil { // not Certificates: of those, none is sent that the server will not like
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil }
	}
	tr := &http.Transport{TLSClientConfig: c, DisableKeepAlives: true, Protocols: new(http.Protocols)}
	tr.Protocols.SetHTTP2(http2)
	tr.Protocols.SetHTTP1(!http2)
	return &http.Client{Transport: tr}
}

const deviceRules = `version: 1
identify: { device: tls.client_cn }
rules:
  - { name: devices, per: device, limits: 3/hour }
  - { name: strangers, when: { device: absent }, deny: true }
`

// A client is known by the certificate that an authority of tls.client_ca vouches
// for, over HTTP/1.1 and HTTP/2, also when its session is resumed, and no longer
// than the file names that authority.
func testClientCertificates(t *testing.T, bin string) {
	gatewayCert, gatewayKey := newCertificate(t, "gateway")
	ours, theirs := testdep.NewCertificate(t, "ours", nil), testdep.NewCertificate(t, "theirs", nil)
	args := []string{
		"--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0", "--rules=rules.yaml",
		"--tls.cert=cert.pem", "--tls.key=key.pem",
	}
	begin := func(t *testing.T, more ...string) (*sandbox, *serving, string) {
		w := newSandbox(t, bin, "cert.pem", gatewayCert, "key.pem", gatewayKey, "ca.pem", ours.PEM(), "rules.yaml", deviceRules)
		s := w.serve("", nil, append(args, more...)...)
		gateway, _ := s.ready()
		return w, s, gateway
	}
	ask := func(c *http.Client, gateway string) string {
		res, err := c.Get(gateway + "/")
		if err != nil {
			return "no connection"
		}
		defer res.Body.Close()
		_, _ = io.Copy(io.Discard, res.Body)
		return fmt.Sprint(res.Proto, " ", res.StatusCode)
	}
	each := func(t *testing.T, f func(t *testing.T, http2 bool, proto string)) {
		for _, http2 := range []bool{false, true} {
			proto := map[bool]string{false: "HTTP/1.1", true: "HTTP/2.0"}[http2]
			t.Run(proto, func(t *testing.T) { f(t, http2, proto) })
		}
	}
	t.Run("request", func(t *testing.T) {
		each(t, func(t *testing.T, http2 bool, proto string) {
			_, _, gateway := begin(t, "--tls.client_ca=ca.pem")
			one, two := testdep.NewCertificate(t, "one", ours).TLS(), testdep.NewCertificate(t, "two", ours).TLS()
			c := device(&one, http2) // resumes its sessions
			for i, want := range []string{" 200", " 200", " 200", " 429"} {
				if got := ask(c, gateway); got != proto+want {
					t.Errorf("request %d of one: %s, want %s", i+1, got, want)
				}
			}
			if got := ask(device(&two, http2), gateway); got != proto+" 200" {
				t.Errorf("two: %s", got)
			}
			if got := ask(device(nil, http2), gateway); got != proto+" 403" {
				t.Errorf("without a certificate: %s", got)
			}
			forged := testdep.NewCertificate(t, "two", theirs).TLS()
			if got := ask(device(&forged, http2), gateway); got != "no connection" {
				t.Errorf("with one of another authority: %s", got)
			}
		})
	})
	t.Run("require", func(t *testing.T) {
		each(t, func(t *testing.T, http2 bool, proto string) {
			_, _, gateway := begin(t, "--tls.client_ca=ca.pem", "--tls.client_auth=require")
			one := testdep.NewCertificate(t, "one", ours).TLS()
			if got := ask(device(&one, http2), gateway); got != proto+" 200" {
				t.Errorf("with a certificate: %s", got)
			}
			if got := ask(device(nil, http2), gateway); got != "no connection" {
				t.Errorf("without a certificate: %s", got)
			}
		})
	})
	t.Run("reload", func(t *testing.T) {
		w, s, gateway := begin(t, "--tls.client_ca=ca.pem")
		one, other := testdep.NewCertificate(t, "one", ours).TLS(), testdep.NewCertificate(t, "other", theirs).TLS()
		resuming := device(&one, true)
		if got := ask(resuming, gateway); got != "HTTP/2.0 200" {
			t.Fatalf("before: %s", got)
		}
		w.write("ca.pem", "nothing")
		w.until("a bad file is told of", func() bool {
			_ = ask(device(nil, true), gateway) // the file is looked at when somebody comes
			return strings.Contains(s.logText(), "the authorities of client certificates were not reloaded")
		})
		if got := ask(resuming, gateway); got != "HTTP/2.0 200" {
			t.Errorf("with a bad file: %s", got)
		}
		w.write("ca.pem", theirs.PEM())
		w.until("the other authority holds", func() bool { return ask(device(&other, true), gateway) == "HTTP/2.0 200" })
		if got := ask(resuming, gateway); got != "no connection" {
			t.Errorf("a session of the authority before is resumed: %s", got)
		}
	})
	t.Run("not asked for", func(t *testing.T) {
		_, s, gateway := begin(t)
		s.await(1, "`device` is read from client certificates, and none is asked for: it counts as missing")
		one := testdep.NewCertificate(t, "one", ours).TLS()
		if got := ask(device(&one, true), gateway); got != "HTTP/2.0 403" {
			t.Errorf("answered %s", got)
		}
	})
}
