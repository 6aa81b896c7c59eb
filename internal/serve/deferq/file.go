package deferq

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"tidegate.dev/tidegate/internal/lang/durable"
)

// FileOptions configure a [File].
type FileOptions struct {
	// Max is how many bytes all entries may take together.
	Max int64
	// Results is how long done entries are kept, Dead how long dead ones. Both are removed earlier
	// if a new request needs the space.
	Results, Dead time.Duration
	// LockWait is how long to wait for another process to close the file; 0 means 5s.
	LockWait time.Duration
	// Log is told when the file cannot be written; nil means slog.Default.
	Log *slog.Logger
}

// File is a Store in a local file, which one process at a time has open. Only the order of the
// entries is in memory, not the entries themselves.
type File struct {
	o    FileOptions
	db   *bolt.DB
	path string
	w    writer

	mu sync.Mutex
	schedule
	lines   map[Line]*line
	byID    map[string]*item
	rules   map[string]int64 // entries that have not ended, including those being added
	bytes   int64
	spare   int64   // bytes of entries that have ended
	done    []*item // by when they ended
	dead    []*item
	nextSeq uint64
	closed  bool

	checking bool // the file is damaged and still being read, so it cannot be closed
}

// OpenFile opens or creates the file, readable only by its owner. It waits for up to LockWait if
// another process has it open.
func OpenFile(path string, o FileOptions) (f *File, err error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	var file *os.File
	defer func() { // bbolt panics on some pages that are damaged
		if p := recover(); p != nil {
			_ = file.Close() // the damage is the error to report
			f, err = nil, damaged(path, fmt.Errorf("%v", p))
		}
	}()
	db, err := bolt.Open(path, 0o600, &bolt.Options{
		Timeout: cmp.Or(o.LockWait, 5*time.Second), FreelistType: bolt.FreelistMapType,
		OpenFile: func(name string, flag int, mode os.FileMode) (_ *os.File, err error) {
			file, err = os.OpenFile(name, flag, mode)
			return file, err
		},
	})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("open deferred requests: another process has %s open", path)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum), errors.Is(err, bolterrors.ErrVersionMismatch):
		return nil, damaged(path, err)
	case errors.As(err, new(*fs.PathError)):
		return nil, fmt.Errorf("open deferred requests: %w", err)
	case err != nil:
		return nil, fmt.Errorf("open deferred requests %s: %w", path, err)
	}
	f = &File{
		o: o, db: db, path: path,
		lines: make(map[Line]*line), byID: make(map[string]*item), rules: make(map[string]int64),
	}
	f.changed = make(chan struct{})
	opened := f
	defer func() {
		if p := recover(); p != nil || err != nil {
			if !opened.checking {
				db.Close()
			}
			if p != nil {
				panic(p)
			}
		}
	}()
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, fmt.Errorf("open deferred requests: %w", err)
	}
	if err := sound(file, db.Info().PageSize); err != nil {
		return nil, damaged(path, err)
	}
	if err := f.load(); err != nil {
		return nil, err
	}
	f.w.start(db, f.purge, o.Log)
	return f, nil
}

func damaged(path string, err error) error {
	return fmt.Errorf("the file of deferred requests %s is damaged: %w; it was left as it is: move it away to begin a new one, and look into it with `bbolt check`", path, err)
}

// unknown returns the error for a file of another version, for example after a downgrade.
func unknown(path string, err error) error {
	return fmt.Errorf("open deferred requests %s: %w; it was left as it is", path, err)
}

// load checks the whole file, and reads it. It writes nothing unless the file is valid and of this
// version.
func (f *File) load() error {
	if err := f.check(); err != nil {
		return err
	}
	if err := f.makeBuckets(); err != nil {
		return err
	}
	now := time.Now()
	return f.db.View(func(tx *bolt.Tx) error {
		for _, b := range [][]byte{waitBucket, endedBucket} {
			err := tx.Bucket(b).ForEach(func(k, v []byte) error {
				e, err := decode(v)
				var version *versionError
				if errors.As(err, &version) {
					return unknown(f.path, fmt.Errorf("the record %x: %w", k, err))
				}
				if err == nil && len(k) != 8 {
					err = errors.New("it has another number")
				}
				if err != nil {
					return damaged(f.path, fmt.Errorf("the record %x: %w", k, err))
				}
				f.loaded(tx, binary.BigEndian.Uint64(k), e, now)
				return nil
			})
			if err != nil {
				return err
			}
		}
		for _, all := range [][]*item{f.done, f.dead} {
			slices.SortStableFunc(all, func(a, b *item) int { return a.ended.Compare(b.ended) })
		}
		return nil
	})
}

// makeBuckets creates the buckets of a new file. An existing file must have all of them, and be of
// this version.
func (f *File) makeBuckets() error {
	fresh := false
	err := f.db.View(func(tx *bolt.Tx) error {
		if first, _ := tx.Cursor().First(); first == nil {
			fresh = true
			return nil
		}
		if meta := tx.Bucket(metaBucket); meta != nil {
			if v := meta.Get(versionKey); len(v) != 1 || v[0] != Version {
				return unknown(f.path, fmt.Errorf("its version is %v, and this program knows %d", v, Version))
			}
		}
		for _, name := range buckets { // another version may have other buckets
			if tx.Bucket(name) == nil {
				return damaged(f.path, fmt.Errorf("it has no %s", name))
			}
		}
		return nil
	})
	if err != nil || !fresh { // so that a full disk does not prevent reading
		return err
	}
	err = f.db.Update(func(tx *bolt.Tx) error {
		for _, name := range buckets {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		return tx.Bucket(metaBucket).Put(versionKey, []byte{Version})
	})
	if err == nil {
		err = durable.SyncDir(filepath.Dir(f.path)) // so that the file's name also survives a crash of the machine
	}
	if err != nil {
		return fmt.Errorf("begin a file of deferred requests, %s: %w", f.path, err)
	}
	return nil
}

// mostFaults is after how many faults a check stops early: circular references between pages would
// produce them without end.
const mostFaults = 1000

// check examines every page of the file. bbolt does that on its own goroutine: the file must not be
// closed before it has ended.
func (f *File) check() error {
	tx, err := f.db.Begin(false)
	if err != nil {
		return fmt.Errorf("check deferred requests: %w", err)
	}
	faults := 0
	for fault := range tx.Check() {
		if err == nil {
			err = damaged(f.path, fault)
		}
		if faults++; faults == mostFaults {
			f.checking = true
			return err
		}
	}
	_ = tx.Rollback() // nothing was written
	return err
}

// loaded adds an entry of the file to its line, or to those that have ended. The wall clock may have
// been changed since it was written: no entry waits longer than promised.
func (f *File) loaded(tx *bolt.Tx, seq uint64, e *Entry, now time.Time) {
	e.Request.Body = tx.Bucket(bodyBucket).Get(key(seq)) // only for its size
	it := newItem(e)
	it.seq = seq
	it.expires = now.Add(min(e.Expires.Sub(now.Round(0)), e.Keep))
	it.next = now.Add(min(max(e.Next.Sub(now.Round(0)), 0), maxRetryAfter))
	f.nextSeq = max(f.nextSeq, seq+1)
	f.byID[it.id] = it
	f.bytes += it.size
	if e.State == Done || e.State == Dead {
		f.spare += it.size
	}
	switch e.State {
	case Done:
		it.ended = now.Add(min(e.Ended.Sub(now.Round(0)), 0))
		f.done = append(f.done, it)
	case Dead:
		it.ended = now.Add(min(e.Ended.Sub(now.Round(0)), 0))
		f.dead = append(f.dead, it)
	default:
		it.state = Waiting
		f.rules[it.rule]++
		l := f.lineOf(e.Line)
		l.bytes += it.size
		f.append(l, it, now)
	}
}

func newItem(e *Entry) *item {
	return &item{
		id: e.ID, rule: e.Line.Rule, size: e.size(), accepted: e.Accepted, expires: e.Expires,
		state: e.State, attempts: e.Attempts, next: e.Next, reason: e.Reason, ended: e.Ended,
	}
}

func (f *File) lineOf(of Line) *line {
	l := f.lines[of]
	if l == nil {
		l = &line{of: of, at: -1}
		f.lines[of] = l
	}
	return l
}

// Close implements Store. Unrecorded ends are written first, if the disk works.
func (f *File) Close() error {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.w.close()
	return f.db.Close()
}
