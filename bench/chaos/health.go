package main

import (
	"context"
	"sync"
	"time"
)

// healthWatch follows what the nodes say of their store.
type healthWatch struct {
	s    *stage
	stop context.CancelFunc
	done sync.WaitGroup

	mu    sync.Mutex
	nodes []nodeWatch
}

type nodeWatch struct {
	ill   time.Time // when it first said so; zero means it never did
	well  time.Time // since when it says that it is, again
	isIll bool
	why   string // it was ill
}

func watchHealth(s *stage) *healthWatch {
	w := &healthWatch{s: s, nodes: make([]nodeWatch, len(s.fleet))}
	var ctx context.Context
	ctx, w.stop = context.WithCancel(s.ctx)
	for i, n := range s.fleet {
		w.done.Go(func() { w.follow(ctx, i, n) })
	}
	return w
}

func (w *healthWatch) follow(ctx context.Context, i int, n *node) {
	ticker := time.NewTicker(25 * time.Millisecond)
	defer ticker.Stop()
	for ctx.Err() == nil {
		if h, err := n.health(ctx); err == nil {
			w.see(i, h.Status != "ok", h.Why)
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

func (w *healthWatch) see(i int, ill bool, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	is := &w.nodes[i]
	switch {
	case ill && is.ill.IsZero():
		is.ill, is.why = time.Now(), why
	case !ill && is.isIll:
		is.well = time.Now()
	}
	is.isIll = ill
}

// never is how long it takes to recover when it does not happen.
const never = time.Hour

// recovered returns how long after an instant the last node was well again.
func (w *healthWatch) recovered(from time.Time) (took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.nodes {
		switch {
		case n.isIll:
			return never
		case !n.well.IsZero():
			took = max(took, n.well.Sub(from))
		}
	}
	return took
}

// awaitRecovery waits until all nodes are well.
func (w *healthWatch) awaitRecovery(from time.Time) time.Duration {
	for time.Since(from) < 10*time.Second {
		w.s.pause(25 * time.Millisecond)
		if took := w.recovered(from); took != never {
			return max(took, 0)
		}
	}
	return never
}

// end tells how many nodes noticed that something was wrong, how long the last of them
// took, and what it said.
func (w *healthWatch) end(from time.Time) (affected int, noticed time.Duration, why string) {
	w.stop()
	w.done.Wait()
	for _, n := range w.nodes {
		if !n.ill.IsZero() {
			affected++
			if took := n.ill.Sub(from); took > noticed {
				noticed, why = took, n.why
			}
		}
	}
	return affected, noticed, why
}
