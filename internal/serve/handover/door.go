package handover

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync/atomic"
)

// Door is a socket and what answers on it.
type Door struct {
	// Name is what a successor asks for the socket by.
	Name string
	// Listener is as [Heir.Listen] returned it.
	Listener net.Listener
	// Open returns a new server each time it is called: one that was shut down is
	// used up, and when a successor fails, another one begins.
	Open func() (Server, error)
	// Last: it stays open while the others are closed, so that operators see how
	// that goes.
	Last bool
}

// Server is what an http.Server can do.
type Server interface {
	// Serve answers until Shutdown or Close.
	Serve(net.Listener) error
	// Shutdown closes the listener, tells clients to leave, and returns when they
	// have, or when ctx ends.
	Shutdown(context.Context) error
	// Close cuts off what is under way.
	Close() error
}

// opened is a Door that is being served.
type opened struct {
	Door
	server  Server
	closing atomic.Bool
}

// build makes the server, which does not serve yet.
func (d Door) build() (*opened, error) {
	server, err := d.Open()
	if err != nil {
		return nil, err
	}
	return &opened{Door: d, server: server}, nil
}

// serve begins to; failed is told if that ends by itself.
func (o *opened) serve(failed chan<- error) {
	go func() {
		if err := o.server.Serve(o.Listener); !o.closing.Load() {
			failed <- err
		}
	}()
}

// leave closes the listener, and returns when requests in hand are done; those
// that are not when ctx ends are cut off.
func (o *opened) leave(ctx context.Context, log *slog.Logger) {
	switch err := o.server.Shutdown(ctx); {
	case errors.Is(err, context.DeadlineExceeded):
		log.Warn("requests were cut off that took longer than drain", "on", o.Name)
	case err != nil && !errors.Is(err, net.ErrClosed): // closing a listener again is no news
		log.Warn("a listener was not closed in order", "on", o.Name, "err", err)
	}
	o.end()
}

// end cuts off what is left.
func (o *opened) end() {
	o.closing.Store(true)
	_ = o.server.Close() // what it says of connections is of no use to anybody
}

// pass leaves the file of a Unix socket in place when the listener is closed:
// somebody else goes on with it.
func (o *opened) pass() {
	if u, ok := o.Listener.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false)
	}
}
