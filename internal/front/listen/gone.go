package listen

import (
	"context"
	"sync"
	"time"
)

// How often a watched client is looked at: at first, and at most as rarely once it has been
// watched for long.
const (
	goneEvery   = 20 * time.Millisecond
	goneSlowest = time.Second
)

// Watch is a context that also ends when the client of a request over HTTP/1 leaves.
//
// For every request, net/http starts a goroutine that reads one byte, which fails when the client
// leaves, and stops it before it answers. That costs more than deciding about the request, and
// most are answered before anybody could want to know. So http1Conn.Read ends these reads at once,
// without data, and clients are looked at from time to time, from the moment that somebody waits
// for the end of their context. Over TLS, net/http watches them as well.
type Watch struct {
	context.Context
	cancel context.CancelFunc
	conn   *http1Conn
	by     *watcher
	since  time.Time
	next   time.Time // under by.mu: when to look
}

// Watch returns a context that ends with ctx, when the client leaves, or when Stop is called. It
// returns nil if only net/http watches the client: then ctx itself ends when the client leaves.
func (c *Client) Watch(ctx context.Context) *Watch {
	if c.conn == nil || c.conn.http1 == nil || c.conn.http1.watcher == nil {
		return nil
	}
	w := &Watch{conn: c.conn.http1, by: c.conn.http1.watcher, since: time.Now()}
	w.next = w.since.Add(goneEvery)
	w.Context, w.cancel = context.WithCancel(ctx)
	w.by.add(w)
	return w
}

// Look ends the context if the client has left.
func (w *Watch) Look() {
	if !w.conn.tunnel.Load() && hasGone(w.conn.counted.Conn) { // the sides of a tunnel may end one by one
		w.cancel()
	}
}

// Stop ends the watch and the context.
func (w *Watch) Stop() {
	w.by.remove(w)
	w.cancel()
}

// watcher looks at watched clients, on one goroutine while there are any.
type watcher struct {
	mu      sync.Mutex
	watches map[*Watch]struct{} // under mu
	running bool                // under mu
}

func (g *watcher) add(w *Watch) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.watches[w] = struct{}{}
	if !g.running {
		g.running = true
		go g.run()
	}
}

func (g *watcher) remove(w *Watch) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.watches, w)
}

func (g *watcher) run() {
	tick := time.NewTicker(goneEvery)
	defer tick.Stop()
	for {
		due, running := g.due(<-tick.C)
		if !running {
			return
		}
		for _, w := range due {
			w.Look()
		}
	}
}

// due returns the watches to look at. running is false if there are no watches.
func (g *watcher) due(now time.Time) (due []*Watch, running bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for w := range g.watches {
		switch {
		case w.Err() != nil: // nobody stops a watch that began after the end of its request
			delete(g.watches, w)
		case !now.Before(w.next):
			w.next = now.Add(min(max(goneEvery, now.Sub(w.since)/4), goneSlowest))
			due = append(due, w)
		}
	}
	g.running = len(g.watches) > 0
	return due, g.running
}
