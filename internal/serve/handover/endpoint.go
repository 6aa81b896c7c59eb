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
	// Open returns a new server. A server cannot serve again after Shutdown, so Open is also called
	// before each handover, in case the successor fails.
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
	closing atomic.Bool // set before Shutdown or Close, so that the resulting error is ignored
}

// build opens a server for the endpoint. It does not serve yet.
func (d Endpoint) build() (*opened, error) {
	server, err := d.Open()
	if err != nil {
		return nil, err
	}
	return &opened{Endpoint: d, server: server}, nil
}

// serve starts the server in the background. If it ends unasked, its error is sent to failed.
func (o *opened) serve(failed chan<- error) {
	go func() {
		if err := o.server.Serve(o.Listener); !o.closing.Load() {
			failed <- err
		}
	}()
}

// leave closes the listener and waits for the requests in progress. Those that are not done when
// ctx ends are cut off.
func (o *opened) leave(ctx context.Context, log *slog.Logger) {
	switch err := o.server.Shutdown(ctx); {
	case errors.Is(err, context.DeadlineExceeded):
		log.Warn("requests were cut off that took longer than drain", "on", o.Name)
	case err != nil && !errors.Is(err, net.ErrClosed): // closing a listener twice is not worth a warning
		log.Warn("a listener was not closed cleanly", "on", o.Name, "err", err)
	}
	o.end()
}

// end closes the server and its remaining connections.
func (o *opened) end() {
	o.closing.Store(true)
	_ = o.server.Close() // errors of single connections do not matter
}

// own sets whether the file of a Unix socket is removed when the listener is closed.
func (o *opened) own(file bool) {
	if u, ok := o.Listener.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(file)
	}
}
