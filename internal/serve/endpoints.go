package serve

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"tidegate.dev/tidegate/internal/front/gateway"
	"tidegate.dev/tidegate/internal/front/listen"
	"tidegate.dev/tidegate/internal/serve/handover"
)

// endpoints returns what the process listens on.
func (s *server) endpoints() (all []handover.Endpoint) {
	for _, d := range []handover.Endpoint{
		{Name: "gateway", Listener: s.gateway.listener, Open: s.openGateway},
		{Name: "check", Listener: s.checkDoor.listener, Open: s.openCheck},
		{Name: "resp", Listener: s.respDoor.listener, Open: s.openRESP},
		{Name: "rls", Listener: s.rlsDoor.listener, Open: s.openRLS},
		{Name: "rls_http", Listener: s.rlsDoor.http, Open: s.openRLSHTTP},
		{Name: "admin", Listener: s.admin.listener, Last: true, Open: s.openAdmin},
	} {
		if d.Listener != nil {
			all = append(all, d)
		}
	}
	return all
}

// openGateway returns a new gateway. It is the current one from now on, even before it serves.
func (s *server) openGateway() (handover.Server, error) {
	g, err := gateway.New(s.gatewayOptions())
	if err != nil {
		return nil, err
	}
	s.gateway.opened = append(s.gateway.opened, g)
	s.gateway.current.Store(g)
	return tlsServer{g, s.gateway.tls.config()}, nil
}

func (s *server) openAdmin() (handover.Server, error) {
	f := s.openFeed()
	api, page := s.openPage(s.adminOptions(f))
	return feeding{tlsServer{s.adminServer(api), s.admin.tls.config()}, &s.following, f, page}, nil
}

// maxOperators bounds the connections of the admin listener, besides those of followers and
// dashboard pages: clients that nobody has authenticated must not use up the open files.
const maxOperators = 32

func (s *server) adminServer(api http.Handler) *listen.Server {
	return listen.NewServer(listen.ServerOptions{
		Handler: api,
		Limits: listen.HTTPLimits{
			Limits:      listen.Limits{Connections: maxOperators + s.config.Admin.Followers + s.config.Admin.Pages, Surplus: -1},
			HeaderBytes: http.DefaultMaxHeaderBytes,
			ReadHeader:  10 * time.Second,
			Read:        30 * time.Second,
			Idle:        time.Minute,
		},
		IdleGrace: -1,
		Log:       s.log,
	})
}

// tlsServer is a server with the TLS configuration of its listener; nil means plain HTTP.
type tlsServer struct {
	server interface {
		Serve(net.Listener, *tls.Config) error
		Shutdown(context.Context) error
		Close() error
	}
	config *tls.Config
}

func (t tlsServer) Serve(l net.Listener) error         { return t.server.Serve(l, t.config) }
func (t tlsServer) Shutdown(ctx context.Context) error { return t.server.Shutdown(ctx) }
func (t tlsServer) Close() error                       { return t.server.Close() }
