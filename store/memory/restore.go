package memory

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"os"
	"syscall"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// ErrSnapshot is returned by Restore for a file that is not a whole snapshot.
var ErrSnapshot = errors.New("not a whole snapshot of a memory store")

// Restore opens a store with what a snapshot remembers. Nobody is refilled: only the
// time since the snapshot counts as passed, or none if the clock was set back.
// On an error there is no store; the caller decides whether to start empty.
func Restore(path string, c Config) (*Store, error) {
	// Opening a pipe would wait for somebody who writes.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("restore snapshot: %w", err)
	}
	defer f.Close()
	size, older, err := verifySnapshot(f)
	if err != nil {
		return nil, fmt.Errorf("restore snapshot %s: %w", path, err)
	}
	if _, err = f.Seek(int64(len(snapshotMagic)), io.SeekStart); err != nil {
		return nil, fmt.Errorf("restore snapshot %s: %w", path, err)
	}
	r := &snapshotReader{older: older, from: bufio.NewReaderSize(io.LimitReader(f, size), 1<<16)}
	s, err := r.store(c)
	if err != nil {
		return nil, fmt.Errorf("restore snapshot %s: %w", path, err)
	}
	return s, nil
}

// verifySnapshot checks the sum of the file and returns how many bytes lie
// between the magic and the sum, and whether the magic is that of an older one.
func verifySnapshot(f *os.File) (size int64, older bool, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, false, err
	}
	if !info.Mode().IsRegular() {
		return 0, false, fmt.Errorf("%w: it is not a regular file", ErrSnapshot)
	}
	size = info.Size() - sha256.Size
	if size < int64(len(snapshotMagic)) {
		return 0, false, fmt.Errorf("%w: it is too short", ErrSnapshot)
	}
	sum := sha256.New()
	in := bufio.NewReaderSize(f, 1<<16)
	magic := make([]byte, len(snapshotMagic))
	if _, err := io.ReadFull(in, magic); err != nil {
		return 0, false, err
	}
	older = string(magic) == olderMagic
	if string(magic) != snapshotMagic && !older {
		return 0, false, fmt.Errorf("%w: it starts with %q", ErrSnapshot, magic)
	}
	sum.Write(magic)
	if _, err := io.CopyN(sum, in, size-int64(len(magic))); err != nil {
		return 0, false, err
	}
	want := make([]byte, sha256.Size)
	if _, err := io.ReadFull(in, want); err != nil {
		return 0, false, err
	}
	if !bytes.Equal(sum.Sum(nil), want) {
		return 0, false, fmt.Errorf("%w: its checksum is wrong", ErrSnapshot)
	}
	return size - int64(len(magic)), older, nil
}

// snapshotReader reads words, and remembers the first error.
type snapshotReader struct {
	from  io.Reader
	older bool
	pause int // keys until room is looked for again
	err   error
}

func (r *snapshotReader) word() uint64 {
	var b [8]byte
	if r.err == nil {
		_, r.err = io.ReadFull(r.from, b[:])
	}
	return binary.LittleEndian.Uint64(b[:])
}

func (r *snapshotReader) store(c Config) (*Store, error) {
	k0, k1 := r.word(), r.word()
	taken, wall, origin := int64(r.word()), int64(r.word()), int64(r.word())
	if r.err != nil {
		return nil, r.err
	}
	s := open(c, expandHashKey(k0, k1))
	elapsed := max(0, s.now()-wall)
	now := s.resumeAt(taken + elapsed)
	// A bucket of level x when the snapshot was taken is at x - elapsed now.
	shift := (now - elapsed - taken) + (origin - s.origin.Load())
	for {
		n := r.word()
		if r.err != nil || n == 0 {
			return s, r.err
		}
		if err := r.table(s, n, shift, now); err != nil {
			return nil, err
		}
	}
}

// resumeAt makes at the store's time, which then differs from the wall clock by as much as that of the
// old store did: windows and stamps are those of its time. A Clock of the caller goes as it goes. It
// returns the store's time. Nothing is in the store yet.
func (s *Store) resumeAt(at int64) (now int64) {
	if s.clock.custom != nil {
		return s.now()
	}
	s.clock.base += at - s.clock.now()
	s.clock.sync()
	s.origin.Store(at - originMargin)
	return at
}

func (r *snapshotReader) table(s *Store, specBytes uint64, shift, now int64) error {
	if specBytes > 1<<16 {
		return fmt.Errorf("%w: a limit of %d bytes", ErrSnapshot, specBytes)
	}
	raw := make([]byte, specBytes)
	if _, err := io.ReadFull(r.from, raw); err != nil {
		return err
	}
	var spec tidegate.Spec
	if err := json.Unmarshal(raw, &spec); err != nil {
		return err
	}
	l, err := tidegate.NewLimit(spec)
	if err != nil {
		return err
	}
	lim, err := s.compile(l)
	if err != nil {
		return err
	}
	widest := int64(r.word())
	lim.table.noteLimit(widest, 0)
	for r.word() == 1 {
		r.makeRoom(s, lim.table, now)
		tag, meta, fast := r.word(), r.word(), r.word()
		k := keyHash{tag, meta &^ slowMask}
		c := cell{meta & slowMask, fast & fastMask}
		switch {
		case lim.kind == buckets && c != (cell{}):
			c.fast = min(uint64(max(0, int64(c.fast)+shift)), fastMask)
			if lim.bucket.Raw {
				lim.table.noteLimit(widest, s.bucket(c).Drained-now)
			} else {
				lim.table.noteLimit(widest, product(widest, int64(c.slow&emMask))) // under whatever limit it was written
			}
		case lim.kind.inRecord():
			r.record(s, lim, k, now)
			continue
		}
		if r.err != nil {
			return r.err
		}
		if inserted, _ := s.insert(lim, k, c, now); !inserted {
			lim.table.forgotten.Add(1)
		}
	}
	return r.err
}

// restorePages is how many pages a key may take that splits its segment, restorePause after how many keys
// room is looked for again where there was none.
const (
	restorePages = 8
	restorePause = 256
)

// makeRoom lets all segments make room for the next key, as far as they have keys that hold nobody back. Otherwise
// the last segment would have to make room for all keys that are left, since they come in the order of their tags.
func (r *snapshotReader) makeRoom(s *Store, t *table, now int64) {
	if r.pause--; r.pause > 0 || s.budget.freePages() >= restorePages || s.reclaim(t, restorePages, now, false) {
		return
	}
	for range maxRounds {
		if s.shrink(t, s.sweeper.next(), now, dropUnexhausted) && s.budget.freePages() >= restorePages {
			return
		}
	}
	r.pause = restorePause
}

// record reads a record into the store; without memory for it the key starts
// afresh, and is counted as forgotten.
func (r *snapshotReader) record(s *Store, lim *compiledLimit, k keyHash, now int64) {
	n := r.word()
	if r.err == nil && n > maxPages*algo.PageWords {
		r.err = fmt.Errorf("%w: a record of %d words", ErrSnapshot, n)
	}
	if r.err != nil {
		return
	}
	read := algo.NewRecord(int(n))
	for i := range int(n) {
		read.Set(i, r.word())
	}
	switch {
	case r.err != nil || n == algo.RunsHeader:
		return
	case !read.Valid():
		r.err = fmt.Errorf("%w: a record does not add up", ErrSnapshot)
		return
	}
	if r.older {
		read.SetParts(int64(lim.limit.Parts))
	}
	if e, ok := read.Entry(); ok {
		r.entry(s, lim, k, e, now)
		return
	}
	kept := false
	s.withSlot(lim, k, now, true, func(lim *compiledLimit, g *segment, c cell, _ bool) (cell, bool) {
		h := g.records.alloc(int(n))
		if h == 0 {
			return c, false
		}
		kept = true
		to := lim.budget.record(h)
		read.CopyTo(&to)
		return cell{slow: uint64(h)}, true
	})
	if !kept {
		lim.table.forgotten.Add(1)
	}
}

// entry is record for one that needs no memory of its own.
func (r *snapshotReader) entry(s *Store, lim *compiledLimit, k keyHash, e algo.Entry, now int64) {
	if e.Count == 0 {
		return
	}
	if inserted, _ := s.insert(lim, k, entryCell(e), now); !inserted {
		lim.table.forgotten.Add(1)
	}
}

// product returns a·b for a, b ≥ 0, saturating.
func product(a, b int64) int64 {
	if hi, lo := bits.Mul64(uint64(a), uint64(b)); hi == 0 && lo <= math.MaxInt64 {
		return int64(lo)
	}
	return math.MaxInt64
}
