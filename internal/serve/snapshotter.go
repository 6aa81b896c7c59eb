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

// snapshotter writes the counters of a memory store to their file at intervals, so that little is
// lost if the process is killed.
type snapshotter struct {
	store *memory.Store
	file  string // "" means none
	every time.Duration
	also  func(file string) error // writes other files next to the counters
	log   *slog.Logger
	stop  chan struct{}
	done  chan struct{} // closed when the goroutine has ended

	mu     sync.Mutex // held while the file is written
	handed bool       // under mu: a successor owns the counters now
	failed bool       // under mu: the last write failed
}

// The file is first written under another name, which a killed process may leave behind. A file
// that is not a valid snapshot is renamed.
const (
	newSnapshot = ".new"
	badSnapshot = ".bad"
)

// newSnapshotter starts to write the counters, if c has a file and an interval. The caller closes it.
func newSnapshotter(store *memory.Store, c config.Memory, also func(file string) error, log *slog.Logger) *snapshotter {
	k := &snapshotter{store: store, file: c.Snapshot, every: c.SnapshotEvery, also: also, log: log, stop: make(chan struct{}), done: make(chan struct{})}
	if k.file == "" || k.every <= 0 {
		close(k.done)
		return k
	}
	go k.run()
	return k
}

// run writes the file, and then waits at least as long as that took, so that a large store does not
// keep the disk busy all the time.
func (k *snapshotter) run() {
	defer close(k.done)
	for wait := k.every; ; {
		select {
		case <-k.stop:
			return
		case <-time.After(wait):
		}
		start := time.Now()
		k.save()
		wait = max(k.every, time.Since(start))
	}
}

// save writes the file, unless a successor owns the counters.
func (k *snapshotter) save() {
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

// write replaces file by one with the counters of now, and calls also.
func (k *snapshotter) write(file string) error {
	if err := k.store.Snapshot(file + newSnapshot); err != nil {
		return err
	}
	if err := os.Rename(file+newSnapshot, file); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return k.also(file)
}

// handOver writes the counters for a successor. From then on this process does not write them,
// unless resume is called because the successor failed.
func (k *snapshotter) handOver(file string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.handed = true
	return k.write(file)
}

// resume lets this process write the counters again after handOver.
func (k *snapshotter) resume() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.handed = false
}

// close stops the writes at intervals. It writes nothing itself.
func (k *snapshotter) close() {
	close(k.stop)
	<-k.done
}

// restore opens a store with the counters that were handed over, or those of the snapshot, or none.
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
	attrs := []any{"err", err}
	if handed == "" && os.Rename(file, file+badSnapshot) == nil { // otherwise it would soon be overwritten
		attrs = append(attrs, "kept_as", file+badSnapshot)
	}
	s.log.Warn("the counters could not be restored: all counters start empty", attrs...)
	return memory.Open(o)
}

// dropRemains removes the files of a process that was killed while it wrote.
func dropRemains(file string) {
	remains, _ := filepath.Glob(globQuote(file+newSnapshot) + ".*") // the pattern is well-formed
	for _, name := range append(remains, file+newSnapshot, file+rulesSuffix+newSnapshot) {
		_ = os.Remove(name) // it does no harm
	}
}

// globQuote returns a pattern that only name matches.
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
