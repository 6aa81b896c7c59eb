// Package history keeps the rule sets that were in force, whatever source they came from: the
// last [source.Kept] of them with their files, so that anyone can see what changed when, and
// go back. It puts nothing in force.
//
// With counters in Redis the fleet shares one history; otherwise every process has its own, in
// a file beside the snapshot or in memory.
//
// Start with [New].
package history

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"tidegate.dev/tidegate/rules/source"
)

// Storage stores the sets. Only one goroutine at a time calls Put; the others may be called at any
// time.
type Storage interface {
	// Put makes b the newest set, unless the newest has the same hash.
	Put(ctx context.Context, b *source.Bundle) error
	// History returns the stored sets, newest first. At is when a set came into force.
	History(ctx context.Context) ([]source.Edition, error)
	// Get returns a set by its hash or a prefix of it. The error is [source.ErrNoRevision] if it is
	// not stored.
	Get(ctx context.Context, hash string) (*source.Bundle, error)
}

// Pauses between attempts to pass a set to a Storage that cannot be reached.
const (
	firstPause = 200 * time.Millisecond
	lastPause  = 10 * time.Second
	putTimeout = 30 * time.Second
	// closeTimeout is how long Close may wait for the Storage.
	closeTimeout = time.Second
)

// History passes sets to a Storage in the background. Use [New].
type History struct {
	storage Storage
	log     *slog.Logger
	wake    chan struct{} // has an element when there is something to put
	stop    context.CancelFunc
	done    chan struct{}

	mu      sync.Mutex
	pending []*source.Bundle // not passed on yet, newest last
	paused  bool             // a successor writes now
}

// New returns a history that is stored by storage.
func New(storage Storage, log *slog.Logger) *History {
	ctx, stop := context.WithCancel(context.Background())
	h := &History{storage: storage, log: log, wake: make(chan struct{}, 1), stop: stop, done: make(chan struct{})}
	go h.run(ctx)
	return h
}

// Note adds a set that came into force at b.At. The set must not be changed afterwards.
func (h *History) Note(b *source.Bundle) {
	h.mu.Lock()
	h.pending = append(h.pending, b)
	if more := len(h.pending) - source.Kept; more > 0 {
		h.pending = slices.Delete(h.pending, 0, more)
	}
	h.mu.Unlock()
	h.nudge()
}

func (h *History) nudge() {
	select {
	case h.wake <- struct{}{}:
	default: // it is about to look
	}
}

// run passes pending sets to the Storage, in order, until it is stopped.
func (h *History) run(ctx context.Context) {
	defer close(h.done)
	pause, told := firstPause, false
	for {
		retry := (<-chan time.Time)(nil)
		switch err := h.put(ctx); {
		case ctx.Err() != nil:
			return
		case err != nil:
			// A store that is away is logged elsewhere; this is logged if it lasts.
			if pause == lastPause && !told {
				h.log.Warn("the rules in force cannot be added to the history; it is tried again", "err", err)
				told = true
			}
			retry, pause = time.After(pause), min(2*pause, lastPause)
		case told:
			h.log.Info("the rules in force are in the history again")
			fallthrough
		default:
			pause, told = firstPause, false
		}
		select {
		case <-ctx.Done():
			return
		case <-h.wake:
		case <-retry:
		}
	}
}

// put passes all pending sets to the Storage, oldest first.
func (h *History) put(ctx context.Context) error {
	for {
		h.mu.Lock()
		if len(h.pending) == 0 || h.paused {
			h.mu.Unlock()
			return nil
		}
		b := h.pending[0]
		h.mu.Unlock()
		limited, cancel := context.WithTimeout(ctx, putTimeout)
		err := h.storage.Put(limited, b)
		cancel()
		if err != nil {
			return err
		}
		h.mu.Lock()
		if len(h.pending) > 0 && h.pending[0] == b {
			h.pending = slices.Delete(h.pending, 0, 1)
		}
		h.mu.Unlock()
	}
}

// History returns the sets that were in force, newest first. With an error, it returns only those
// that the Storage has not got yet.
func (h *History) History(ctx context.Context) ([]source.Edition, error) {
	h.mu.Lock()
	var all []source.Edition
	for _, b := range slices.Backward(h.pending) {
		all = append(all, b.Edition)
	}
	h.mu.Unlock()
	kept, err := h.storage.History(ctx)
	all = append(all, kept...)
	all = slices.CompactFunc(all, func(a, b source.Edition) bool { return a.Hash == b.Hash }) // one was passed on meanwhile
	return all[:min(len(all), source.Kept)], err
}

// Get returns a set by its hash or a prefix of it.
func (h *History) Get(ctx context.Context, hash string) (*source.Bundle, error) {
	h.mu.Lock()
	b := find(h.pending, hash)
	h.mu.Unlock()
	if b != nil {
		return b, nil
	}
	return h.storage.Get(ctx, hash)
}

// find returns the newest of the sets whose hash has that prefix, or nil.
func find(sets []*source.Bundle, hash string) *source.Bundle {
	for _, b := range slices.Backward(sets) {
		if Names(hash, b.Hash) {
			return b
		}
	}
	return nil
}

// minHash is the shortest prefix of a hash that names a set.
const minHash = 6

// Names reports whether text is hash, or a prefix of hash of at least minHash characters.
func Names(text, hash string) bool {
	return len(text) >= minHash && len(text) <= len(hash) && hash[:len(text)] == text
}

// Pause stops writing, because a successor writes. Resume continues.
func (h *History) Pause() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.paused = true
}

// Resume continues to write after Pause.
func (h *History) Resume() {
	h.mu.Lock()
	h.paused = false
	h.mu.Unlock()
	h.nudge()
}

// Close stops the history. Pending sets are tried once more.
func (h *History) Close() {
	h.stop()
	<-h.done
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := h.put(ctx); err != nil && !errors.Is(err, context.Canceled) {
		h.log.Warn("the history does not have the last rules in force", "err", err)
	}
}
