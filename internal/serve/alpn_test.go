//go:build unix

package serve

import (
	"crypto/tls"
	"log/slog"
	"net"
	"testing"

	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// Whether a listener asks for client certificates does not change which protocols it speaks.
func TestProtocolsOfListeners(t *testing.T) {
	cert, key := newCertificate(t, "doors")
	w := newSandbox(t, "", "cert.pem", cert, "key.pem", key, "ca.pem", testdep.NewCertificate(t, "ours", nil).PEM())
	c := &config.Config{}
	any := config.Address{Network: "tcp", Address: "127.0.0.1:0"}
	c.Listen = config.Listen{Check: any, RESP: any, RLS: any}
	for name, ca := range map[string]string{"anybody": "", "client certificates": w.dir + "/ca.pem"} {
		t.Run(name, func(t *testing.T) {
			files := config.DoorTLS{KeyPair: config.KeyPair{Cert: w.dir + "/cert.pem", Key: w.dir + "/key.pem"}, ClientCA: ca}
			c.RESP.TLS, c.RLS.TLS = files, files
			log := slog.New(slog.DiscardHandler)
			var front gatewayFront
			var redis respDoor
			var envoy rlsDoor
			for _, err := range []error{
				front.loadTLS(config.TLS{Cert: files.Cert, Key: files.Key, ClientCA: ca}, log), redis.prepare(c, log), envoy.prepare(c, log),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			f := func(of string, config *tls.Config, offers []string, want string) {
				t.Helper()
				ours, theirs := net.Pipe()
				defer ours.Close()
				defer theirs.Close()
				go func() { _ = tls.Server(theirs, config).Handshake() }()
				client := tls.Client(ours, &tls.Config{InsecureSkipVerify: true, NextProtos: offers})
				got := "none"
				if err := client.Handshake(); err != nil {
					got = "refused"
				} else if p := client.ConnectionState().NegotiatedProtocol; p != "" {
					got = p
				}
				if got != want {
					t.Errorf("%s, to a client that offers %v: %s, want %s", of, offers, got, want)
				}
			}
			for _, offer := range []struct {
				protos             []string
				http, redis, envoy string
			}{
				{nil, "none", "none", "none"},
				{[]string{"h2"}, "h2", "none", "h2"},
				{[]string{"http/1.1"}, "http/1.1", "none", "none"}, // of which crypto/tls thinks that it knows no ALPN
				{[]string{"http/1.1", "h2"}, "h2", "none", "h2"},
				{[]string{"redis"}, "refused", "none", "refused"},
			} {
				f("the gateway", front.tls.config(), offer.protos, offer.http)
				f("RESP", redis.tls.config(), offer.protos, offer.redis)
				f("gRPC", envoy.tls.config(), offer.protos, offer.envoy)
			}
		})
	}
}
