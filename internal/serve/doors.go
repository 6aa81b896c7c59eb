package serve

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"time"

	"tidegate.dev/tidegate/internal/front/gateway"
	"tidegate.dev/tidegate/internal/serve/handover"
)

// doors are what the process listens on.
func (s *server) doors() []handover.Door {
	return []handover.Door{
		{Name: "gateway", Listener: s.clients, Open: func() (handover.Server, error) {
			g, err := gateway.New(s.gatewayOptions())
			if err != nil {
				return nil, err
			}
			s.gateway.Store(g)
			return encrypted{g, s.tlsConfig()}, nil
		}},
		{Name: "admin", Listener: s.admin, Last: true, Open: func() (handover.Server, error) {
			return operators{&http.Server{
				Handler:           s.adminHandler(),
				ReadHeaderTimeout: 10 * time.Second,
				ReadTimeout:       30 * time.Second,
				IdleTimeout:       time.Minute,
				ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
				TLSConfig:         s.adminCert.config(),
			}}, nil
		}},
	}
}

// tlsConfig is that of the gateway; nil speaks plain HTTP.
func (s *server) tlsConfig() *tls.Config {
	c := s.certificate.config()
	if s.authorities != nil {
		c.GetConfigForClient = s.authorities.forClient
	}
	return c
}

// encrypted is a gateway that speaks TLS, if it is to.
type encrypted struct {
	*gateway.Gateway
	config *tls.Config
}

func (e encrypted) Serve(l net.Listener) error { return e.Gateway.Serve(l, e.config) }

// operators speaks TLS, if it is to.
type operators struct{ *http.Server }

// mostOperators is how many connections the admin listener has at once: those that nobody
// authenticated must not take the open files that clients need.
const mostOperators = 32

func (a operators) Serve(l net.Listener) error {
	l = &fewConns{Listener: l, most: mostOperators}
	if a.TLSConfig == nil {
		return a.Server.Serve(l)
	}
	return a.ServeTLS(l, "", "")
}
