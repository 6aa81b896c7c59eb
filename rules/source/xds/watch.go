// Package xds gets rules of Envoy's dialect from a control plane, as Envoy Gateway feeds its
// rate limit service: the whole state in every response (SotW), over the aggregated discovery
// service, in resources of the type ratelimit.config.ratelimit.v3.RateLimitConfig.
//
// Start with [Watch]:
//
//	w := xds.Watch(ctx, xds.Options{Address: "envoy-gateway:18001", NodeID: "envoy-ratelimit"})
//	defer w.Close()
//	if err := w.Await(waiting); err != nil {
//		return err // no rules yet: why the server is not reached, or what is wrong with them
//	}
//	domain := w.Set().Domain("eg/http")
//
// A response is put into force whole, and acknowledged, or refused whole. The server is told
// why, in the messages of a rule file: each resource is written as one, so that they have a
// line and a caret. If a response is refused, if the server is gone, or if a server that has just
// started sends no rules, the previous rules stay in force.
//
// The package pulls in gRPC: import it only if you need it.
package xds

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate/internal/lang/sleep"
	"tidegate.dev/tidegate/rules/envoy"
)

// Options of [Watch].
type Options struct {
	// Address is the host and port of the control plane, or unix:PATH.
	Address string
	// NodeID is the name under which the control plane has rules for this process; "" means
	// "default", as in envoyproxy/ratelimit.
	NodeID string
	// Metadata is what else the control plane is told about this process.
	Metadata map[string]string
	// TLS of the connection; nil for plain text.
	TLS *TLS
	// MaxMessage is how long a response may be, in bytes; 0 means 4 MiB.
	MaxMessage int
	// Rules says how resources are read.
	Rules envoy.Options
	// Accept may refuse rules that are about to be put into force; nil accepts all.
	Accept func(*envoy.Set) error
	// OnChange is called after other rules were put into force, with those before; it may not
	// call Close.
	OnChange func(old, now *envoy.Set)
	// Version is that of this program, for the control plane.
	Version string
	// Log gets changes, refusals and outages; nil means slog.Default.
	Log *slog.Logger
}

const (
	defaultNode    = "default"
	defaultMessage = 4 << 20
)

// Watcher keeps a set of domains the same as that of a control plane, until Close or until its
// context ends.
type Watcher struct {
	o      Options
	pace   pace
	set    atomic.Pointer[envoy.Set]
	hash   [sha256.Size]byte // of the resources in force
	record record
	first  chan struct{} // closed when a server has sent something that was accepted
	stop   context.CancelFunc
	done   chan struct{}
	told   string // the last reason for a lost connection that was logged; "" after a response
}

// Watch follows a control plane. It does not wait for it; see [Watcher.Await].
func Watch(ctx context.Context, o Options) *Watcher { return watch(ctx, o, usual) }

func watch(ctx context.Context, o Options, p pace) *Watcher {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.NodeID == "" {
		o.NodeID = defaultNode
	}
	if o.MaxMessage == 0 {
		o.MaxMessage = defaultMessage
	}
	o.Metadata = maps.Clone(o.Metadata)
	w := &Watcher{o: o, pace: p, first: make(chan struct{}), done: make(chan struct{})}
	w.record.is = Status{Address: o.Address, Since: time.Now()}
	ctx, w.stop = context.WithCancel(ctx)
	go w.run(ctx)
	return w
}

// Set returns the rules in force; nil, which has no domains, until a server has sent some.
func (w *Watcher) Set() *envoy.Set { return w.set.Load() }

// Status returns the state of the connection and of the rules.
func (w *Watcher) Status() Status {
	is := w.record.read()
	is.Problems = slices.Clone(is.Problems)
	return is
}

// Await returns nil once a response of the server was accepted, even one without rules. If ctx or
// the Watcher ends before, the error says why there is none.
func (w *Watcher) Await(ctx context.Context) error {
	select {
	case <-w.first:
		return nil
	case <-ctx.Done():
	case <-w.done:
	}
	select {
	case <-w.first:
		return nil
	default:
	}
	if err := w.record.inTheWay(); err != nil {
		return err
	}
	return fmt.Errorf("the control plane %s has sent no rules for the node %q", w.o.Address, w.o.NodeID)
}

// Close ends the connection; the rules in force stay. It returns when nothing runs any more.
func (w *Watcher) Close() {
	w.stop()
	<-w.done
}

// run connects again and again, with a backoff, until ctx ends.
func (w *Watcher) run(ctx context.Context) {
	defer close(w.done)
	defer w.stop()
	wait := backoff{least: w.pace.least, most: w.pace.most}
	for {
		began := time.Now()
		err := w.session(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) >= w.pace.steady {
			wait.reset()
		}
		w.lost(err)
		if sleep.For(ctx, wait.next()) != nil {
			return
		}
	}
}

// connected records that there is a connection.
func (w *Watcher) connected() {
	w.record.edit(func() {
		w.record.is.Connected, w.record.is.Since, w.record.trouble = true, time.Now(), nil
	})
}

// lost records why there is no connection, and logs a new reason.
func (w *Watcher) lost(err error) {
	w.record.edit(func() {
		is := &w.record.is
		if is.Connected {
			is.Connected, is.Since = false, time.Now()
		}
		w.record.trouble = fmt.Errorf("the control plane %s: %s", w.o.Address, reason(err))
	})
	if text := reason(err); text != w.told {
		w.told = text
		message := "no connection to the control plane: the rules that it sent before stay in force"
		if w.set.Load() == nil {
			message = "no connection to the control plane: there are no rules of it yet"
		}
		w.o.Log.Warn(message, "address", w.o.Address, "err", text)
	}
}
