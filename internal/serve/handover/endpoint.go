package handover

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync/atomic"
)

// Endpoint is a listening socket and the server that answers on it.
type Endpoint struct {
	// Name is the name of the socket, by which a successor inherits it.
	Name string
	// Listener is the one that [Heir.Listen] returned.
	Listener net.Listener
	// Open returns a new server. A server that was shut down cannot serve again, so it
	// is called before each handover too, for the case that the successor fails.
	Open func() (Server, error)
	// Last keeps the endpoint open until the others are closed, so that operators can
	// watch the shutdown: set it for the admin listener.
	Last bool
}

// Server is the part of http.Server that an Endpoint needs.
type Server interface {
	// Serve serves until Shutdown or Close is called.
	Serve(net.Listener) error
	// Shutdown closes the listener, tells clients to disconnect, and returns when
	// they have, or when ctx ends.
	Shutdown(context.Context) error
	// Close closes all connections at once.
	Close() error
}

// opened is an Endpoint that is being served.
type opened struct {
	Endpoint
	server  Server
	closing atomic.Bool // set before the server is told to end, so that its error is expected
}

// build opens a server for the endpoint. It does not serve yet.
func (d Endpoint) build() (*opened, error) {
	server, err := d.Open()
	if err != nil {
		return nil, err
	}
	return &opened{Endpoint: d, server: server}, nil
}

// serve starts the server in the background. If it ends without being told to, its error
// is sent to failed.
func (o *opened) serve(failed chan<- error) {
	go func() {
		if err := o.server.Serve(o.Listener); !o.closing.Load() {
			failed <- err
		}
	}()
}

// leave closes the listener and waits for the requests in hand. Those that are not done
// when ctx ends are cut off.
func (o *opened) leave(ctx context.Context, log *slog.Logger) {
	switch err := o.server.Shutdown(ctx); {
	case errors.Is(err, context.DeadlineExceeded):
		log.Warn("requests were cut off that took longer than drain", "on", o.Name)
	case err != nil && !errors.Is(err, net.ErrClosed): // closing a listener again is no news
		log.Warn("a listener was not closed in order", "on", o.Name, "err", err)
	}
	o.end()
}

// end closes the server and all connections that it has left.
func (o *opened) end() {
	o.closing.Store(true)
	_ = o.server.Close() // errors of single connections help nobody
}

// own says whether the file of a Unix socket goes when the listener is closed.
func (o *opened) own(file bool) {
	if u, ok := o.Listener.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(file)
	}
}
