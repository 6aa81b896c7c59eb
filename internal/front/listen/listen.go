// Package listen accepts the connections of clients and holds them to limits: how many are
// open, how long a TLS handshake may take, and for how long a client may stall, sending or
// receiving.
//
// A front end that speaks HTTP starts with [NewServer], for any http.Handler. One that
// speaks another protocol starts with [NewGroup], which gives it each net.Conn after its
// handshake. The package knows no rules: it protects this process, whatever is limited.
package listen

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"sync/atomic"
	"time"
)

// Limits bound connections, whatever protocol they speak.
type Limits struct {
	// Connections may be open at once, on all listeners together; 0 means any number.
	Connections int
	// Surplus connections are accepted above that, so that their clients can be told; see
	// [Conn.Surplus]. More are closed at once. 0 means as many as Connections, but at most
	// 64 or an eighth of it, whichever is more; negative means none.
	Surplus int
	// Handshake is how long a TLS handshake may take; 0 means 10s, negative any time.
	Handshake time.Duration
	// Stall is how long a write may make no progress; 0 means 1m, negative any time.
	Stall time.Duration
}

// complete fills in the defaults. From then on, 0 means no bound; a Surplus of 0 means none.
func (l *Limits) complete() {
	l.Handshake = max(0, cmp.Or(l.Handshake, 10*time.Second))
	l.Stall = max(0, cmp.Or(l.Stall, time.Minute))
	if l.Surplus == 0 {
		l.Surplus = min(l.Connections, max(64, l.Connections/8))
	}
	l.Surplus = max(0, l.Surplus)
}

// Options configure a Group. The zero value has timeouts, and accepts any number of
// connections.
type Options struct {
	Limits Limits
	// NotTLS answers a client that did not start with a TLS handshake where one is
	// expected, given the first bytes it sent. The connection is closed afterwards. nil
	// means that it is closed without a word.
	NotTLS func(conn net.Conn, start []byte)
	// Reclaim frees files and memory; it is called when a connection cannot be accepted.
	// nil means that there is nothing to free.
	Reclaim func()
	// Log gets errors of accepting; nil means that nothing is logged.
	Log *slog.Logger
}

// Group is the connections of one server, whatever listeners they come through.
type Group struct {
	o      Options
	open   atomic.Int64
	active atomic.Int64
}

// NewGroup returns a Group without connections. Add a listener with Listen.
func NewGroup(o Options) *Group {
	o.Limits.complete()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Group{o: o}
}

// Listen returns a listener for the connections that l accepts, each a *Conn, or with a
// config a *tls.Conn on top of one, whose handshake is done. It goes on after every error
// but the end of l, and may be closed more than once. Handshakes are given up when ctx ends.
func (g *Group) Listen(ctx context.Context, l net.Listener, config *tls.Config) net.Listener {
	counted := &listener{Listener: l, group: g, closed: make(chan struct{})}
	if config == nil {
		return counted
	}
	return newTLSListener(ctx, counted, config)
}

// Open returns how many connections are open.
func (g *Group) Open() int64 { return g.open.Load() }

// Active returns how many of them are in use; see [Conn.SetActive].
func (g *Group) Active() int64 { return g.active.Load() }
