package gateway

import (
	"context"
	"crypto/tls"
	"net"

	"tidegate.dev/tidegate/internal/front/listen"
)

func (g *Gateway) newServer() *listen.Server {
	l := &g.o.Limits
	return listen.NewServer(listen.ServerOptions{
		Handler:    g,
		OwnClients: true,
		Limits: listen.HTTPLimits{
			Limits:      listen.Limits{Connections: l.Connections, Stall: l.Stall},
			HeaderBytes: l.HeaderBytes,
			ReadHeader:  l.ReadHeader,
			Read:        l.Read,
			Write:       l.Write,
			Idle:        l.Idle,
			Tunnel:      l.Tunnel,
		},
		IdleGrace: g.o.IdleGrace,
		Reclaim:   g.reclaim,
		Log:       g.o.Log,
	})
}

// Serve answers on l until Shutdown or Close, and then returns nil. With a config it speaks
// TLS, and HTTP/2 to clients that can. It may be called for several listeners, and closes l.
func (g *Gateway) Serve(l net.Listener, config *tls.Config) error { return g.server.Serve(l, config) }

// Shutdown lets requests in progress end; see [listen.Server.Shutdown].
func (g *Gateway) Shutdown(ctx context.Context) error { return g.server.Shutdown(ctx) }

// SkipIdleGrace makes Shutdown close idle connections almost at once.
func (g *Gateway) SkipIdleGrace() { g.server.SkipIdleGrace() }

// Close ends everything at once: requests in progress are aborted.
func (g *Gateway) Close() error {
	g.stop()
	err := g.server.Close()
	g.probes.Wait()
	g.reclaim()
	return err
}
