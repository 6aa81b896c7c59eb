package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/store/memory"
)

// keeper writes the counters of a memory store to their file from time to time, so that
// a process that is killed takes little with it.
type keeper struct {
	store *memory.Store
	file  string // "": none
	every time.Duration
	also  func(file string) error // written beside the counters
	log   *slog.Logger
	stop  chan struct{}
	done  chan struct{} // closed when nothing runs

	mu     sync.Mutex // held while the file is written
	handed bool       // under mu: the counters are somebody else's now
	failed bool       // under mu: the last time
}

// The file is written beside its place, under a name of which a killed process may leave
// one, and what is no snapshot is kept under another.
const (
	newSnapshot = ".new"
	badSnapshot = ".bad"
)

func newKeeper(store *memory.Store, c config.Memory, also func(file string) error, log *slog.Logger) *keeper {
	k := &keeper{store: store, file: c.Snapshot, every: c.SnapshotEvery, also: also, log: log, stop: make(chan struct{}), done: make(chan struct{})}
	if k.file == "" || k.every <= 0 {
		close(k.done)
		return k
	}
	go k.run()
	return k
}

// run writes, and then waits for at least as long as that took: a large store must not
// keep a disk busy for good.
func (k *keeper) run() {
	defer close(k.done)
	for wait := k.every; ; {
		select {
		case <-k.stop:
			return
		case <-time.After(wait):
		}
		start := time.Now()
		k.keep()
		wait = max(k.every, time.Since(start))
	}
}

// keep writes the file, unless the counters are no longer ours.
func (k *keeper) keep() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.handed {
		return
	}
	switch err := k.write(k.file); {
	case err != nil && !k.failed:
		k.failed = true
		k.log.Error("the counters cannot be written: they are lost if this process is killed", "err", err)
	case err == nil && k.failed:
		k.failed = false
		k.log.Info("the counters are written again", "file", k.file)
	}
}

func (k *keeper) write(file string) error {
	if err := k.store.Snapshot(file + newSnapshot); err != nil {
		return err
	}
	if err := os.Rename(file+newSnapshot, file); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return k.also(file)
}

// hand writes the counters for whoever goes on with them: from here on they are not
// written by this process, unless resume says that it goes on itself.
func (k *keeper) hand(file string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.handed = true
	return k.write(file)
}

func (k *keeper) resume() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.handed = false
}

func (k *keeper) close() {
	close(k.stop)
	<-k.done
}

// restore takes up the counters that were handed over, or kept; or none.
func (s *server) restore(handed string) *memory.Store {
	o := memory.Config{MaxBytes: s.config.Store.Memory.Max}
	file, kept := handed, s.config.Store.Memory.Snapshot
	if kept != "" {
		dropRemains(kept)
	}
	if file == "" {
		file = kept
	}
	if file == "" {
		return memory.Open(o)
	}
	store, err := memory.Restore(file, o)
	switch {
	case err == nil:
		s.log.Info("counters restored", "file", file, "keys", store.Stats().Keys)
		return store
	case handed == "" && errors.Is(err, fs.ErrNotExist):
		s.log.Info("no counters to restore", "file", file)
		return memory.Open(o)
	}
	line := []any{"err", err}
	if handed == "" && os.Rename(file, file+badSnapshot) == nil { // or it would soon be written over
		line = append(line, "kept_as", file+badSnapshot)
	}
	s.log.Warn("the counters could not be restored: everybody starts afresh", line...)
	return memory.Open(o)
}

// dropRemains removes what a process left that was killed while it wrote.
func dropRemains(file string) {
	remains, _ := filepath.Glob(globQuote(file+newSnapshot) + ".*") // the pattern is well-formed
	for _, name := range append(remains, file+newSnapshot) {
		_ = os.Remove(name) // it is in nobody's way
	}
}

// globQuote is a pattern that only name matches.
func globQuote(name string) string {
	var quoted []byte
	for i := range len(name) {
		switch name[i] {
		case '*', '?', '[', '\\':
			quoted = append(quoted, '[', name[i], ']')
		default:
			quoted = append(quoted, name[i])
		}
	}
	return string(quoted)
}
