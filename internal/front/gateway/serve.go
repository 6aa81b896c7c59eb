package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"
)

// newServer holds connections to the limits. Requests end with ctx.
func (g *Gateway) newServer(ctx context.Context) *http.Server {
	l := &g.o.Limits
	return &http.Server{
		Handler:                      g,
		DisableGeneralOptionsHandler: true, // OPTIONS * is held to rules like the rest
		ReadHeaderTimeout:            l.ReadHeader,
		ReadTimeout:                  l.Read,
		WriteTimeout:                 l.Write,
		IdleTimeout:                  l.Idle,
		MaxHeaderBytes:               l.HeaderBytes,
		ErrorLog:                     errorLog(g.o.Log),
		BaseContext:                  func(net.Listener) context.Context { return ctx },
		ConnContext:                  withConnInfo,
		ConnState:                    g.track,
		HTTP2:                        &http.HTTP2Config{SendPingTimeout: l.Stall},
	}
}

// Serve answers on l until Shutdown or Close, and then returns nil. With a config
// it speaks TLS, and HTTP/2 to those who can. It may be called for several
// listeners, and closes l.
func (g *Gateway) Serve(l net.Listener, config *tls.Config) error {
	counted := g.newListener(l)
	var all net.Listener = watching{counted, &g.o.Limits}
	if config != nil {
		all = newHandshakes(g.life, counted, config, &g.o.Limits, g.o.Log)
	}
	g.mu.Lock()
	if g.draining.Load() {
		g.mu.Unlock()
		return all.Close()
	}
	g.listeners = append(g.listeners, all)
	g.mu.Unlock()
	err := g.server.Serve(all)
	if errors.Is(err, http.ErrServerClosed) || g.draining.Load() {
		return nil
	}
	return err
}

// Shutdown takes no more connections and lets go of those that are open, each
// after its next answer, or when Patience is over: one that is closed while it is
// idle may at that moment have a request on it. It returns as soon as all requests are
// done, tunnels included, or when ctx ends; what is left then is for Close.
func (g *Gateway) Shutdown(ctx context.Context) error {
	g.closeListeners()
	grace := g.o.Patience
	if g.hurried.Load() {
		grace = min(grace, hurriedPatience)
	}
	if deadline, ok := ctx.Deadline(); ok {
		grace = min(grace, time.Until(deadline)/4)
	}
	parting, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	_ = until(parting, func() bool { return g.conns.Load() == 0 })
	closing, stop := context.WithCancel(ctx)
	defer stop()
	// It closes idle connections and sends GOAWAY at once, but returns late: it waits for
	// connections without a request, and a second after GOAWAY.
	go func() { _ = g.server.Shutdown(closing) }()
	if err := until(ctx, g.isQuiet); err != nil {
		return err
	}
	// The last frames of HTTP/2 are written after their stream is over.
	farewell, cancel := context.WithTimeout(ctx, lastFrames)
	defer cancel()
	_ = until(farewell, func() bool { return g.conns.Load() == 0 })
	return nil
}

const (
	hurriedPatience = 100 * time.Millisecond
	lastFrames      = 200 * time.Millisecond
)

// Hurry has Shutdown close idle connections almost at once: nobody takes over, so there is
// nothing to gain by waiting for one more request.
func (g *Gateway) Hurry() { g.hurried.Store(true) }

// isQuiet reports whether no request is under way, and no answer.
func (g *Gateway) isQuiet() bool { return g.requests.Load() == 0 && g.active.Load() == 0 }

func (g *Gateway) closeListeners() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.draining.Store(true)
	for _, l := range g.listeners {
		_ = l.Close() // it may be closed already
	}
	g.listeners = nil
}

// until looks again and again, as Server.Shutdown does.
func until(ctx context.Context, done func() bool) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Close ends everything at once: requests under way are cut off.
func (g *Gateway) Close() error {
	g.closeListeners()
	g.stop()
	err := g.server.Close()
	g.probes.Wait()
	g.reclaim()
	return err
}
