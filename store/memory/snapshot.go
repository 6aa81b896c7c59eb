package memory

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// A snapshot file is the magic, the hash key, the store's and the wall clock's
// time, the origin, the tables, a 0, and a SHA-256 over all of that. Numbers are
// 64 bits, little endian. A table is the length of its spec, the spec as JSON, the
// widest capacity counted in it, its keys, and a 0. A key is a 1, its tag, meta and
// fast, and where states are in records the number of words and the words.
// Leases are left out: whoever held them is gone.
const snapshotMagic = "tidegate memory snapshot 2\n"

// olderMagic is of snapshots whose records do not say in how many parts they are
// counted: those are the parts of their limit.
const olderMagic = "tidegate memory snapshot 1\n"

// Snapshot writes what the store remembers to a file that only its owner can
// read, replacing it at once or not at all. The store may be in use: each key
// is written as it stands at some instant of the call.
func (s *Store) Snapshot(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // 0600
	if err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	defer os.Remove(f.Name()) // fails once it is renamed
	err = s.writeSnapshot(f)
	runtime.KeepAlive(s)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write snapshot %s: %w", path, err)
	}
	return nil
}

func (s *Store) writeSnapshot(f io.Writer) error {
	buf := bufio.NewWriterSize(f, 1<<16)
	w := &snapshotWriter{to: buf, sum: sha256.New()}
	w.bytes([]byte(snapshotMagic))
	now := s.now()
	s.clock.sync() // a step that is not noticed would count as time passed until the restore
	w.words(s.hash.key[0], s.hash.key[1], uint64(now), uint64(s.clock.wall(now)), uint64(s.origin.Load()))
	for _, t := range s.allTables() {
		lim := t.lastLimit.Load()
		if lim == nil || t.kind == leases {
			continue
		}
		spec, err := json.Marshal(lim.limit.CounterSpec()) // the rules will say the terms again
		if err != nil {
			return err
		}
		w.words(uint64(len(spec)))
		w.bytes(spec)
		w.words(uint64(t.widest.Load()))
		s.writeTable(w, lim)
		w.words(0)
	}
	w.words(0)
	if w.err == nil {
		_, w.err = buf.Write(w.sum.Sum(nil))
	}
	if w.err == nil {
		w.err = buf.Flush()
	}
	return w.err
}

// writeTable visits the segments in the order of their tags, each under its
// lock, so that splits before or behind it make no difference.
func (s *Store) writeTable(w *snapshotWriter, lim *compiledLimit) {
	t := lim.table
	var at uint64      // the first tag not yet written
	var words []uint64 // of one segment: nobody waits for the disk
	for {
		g := t.segment(keyHash{tag: at})
		g.mu.Lock()
		if t.segment(keyHash{tag: at}) != g {
			g.mu.Unlock()
			continue
		}
		words = lim.copySegment(g, words[:0])
		depth, prefix := g.depth, g.prefix
		g.mu.Unlock()
		w.words(words...)
		if w.err != nil || prefix+1 == 1<<depth {
			return
		}
		at = (prefix + 1) << (64 - depth)
	}
}

// copySegment appends the keys of g, whose lock the caller holds.
func (lim *compiledLimit) copySegment(g *segment, words []uint64) []uint64 {
	for i := range int(g.slots.Load()) {
		sl := &g.chunks[i/chunkSlots].Load()[i%chunkSlots]
		tag := sl.tag.Load()
		if tag == 0 {
			continue
		}
		word := sl.seize()
		meta := sl.meta.Load()
		words = append(words, 1, tag, meta, word&fastMask)
		if lim.kind.inRecord() {
			var room entryRoom
			r := lim.record(cell{meta & slowMask, word & fastMask}, &room)
			words = append(words, uint64(r.Words()))
			for i := range r.Words() {
				words = append(words, r.Get(i))
			}
		}
		sl.word.Store(word)
	}
	return words
}

// snapshotWriter writes and sums, and remembers the first error.
type snapshotWriter struct {
	to  io.Writer
	sum hash.Hash
	err error
}

func (w *snapshotWriter) bytes(b []byte) {
	if w.err == nil {
		w.sum.Write(b)
		_, w.err = w.to.Write(b)
	}
}

func (w *snapshotWriter) words(words ...uint64) {
	var b [8]byte
	for _, x := range words {
		binary.LittleEndian.PutUint64(b[:], x)
		w.bytes(b[:])
	}
}
