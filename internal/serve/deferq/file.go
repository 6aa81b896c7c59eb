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
	// Results is how long entries are kept that are done, Dead those that are dead. Both make room
	// before a request is refused for want of it.
	Results, Dead time.Duration
	// LockWait is how long another process may take to close the file; 0 means 5s.
	LockWait time.Duration
	// Log is told when the file cannot be written; nil means slog.Default.
	Log *slog.Logger
}

// File is a Store in a file of this machine, which one process has open at a time. The order of
// all entries is in memory, the entries themselves are not.
type File struct {
	o    FileOptions
	db   *bolt.DB
	path string
	w    writer

	mu sync.Mutex
	schedule
	lines   map[Line]*line
	byID    map[string]*item
	rules   map[string]int64 // that have not ended, those being added included
	bytes   int64
	spare   int64   // of bytes, those of entries that have ended
	done    []*item // by when they ended
	dead    []*item
	nextSeq uint64
	closed  bool

	checking bool // the file is damaged and still being read, so that it cannot be closed
}

// OpenFile opens the file, or makes it, readable for its owner alone. It waits a moment for another
// process that has it open.
func OpenFile(path string, o FileOptions) (f *File, err error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	var file *os.File
	defer func() { // bbolt panics on some pages that are damaged
		if p := recover(); p != nil {
			_ = file.Close() // the error that is told is the damage
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

// unknown is for a file of another version, as after a downgrade.
func unknown(path string, err error) error {
	return fmt.Errorf("open deferred requests %s: %w; it was left as it is", path, err)
}

// load checks all that is there, and reads it. Nothing is written to a file that is not a good one of this version.
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

// makeBuckets makes those of a new file. Any other has to have all of them, and to be of this version.
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
		for _, name := range buckets { // others may be named otherwise in another version
			if tx.Bucket(name) == nil {
				return damaged(f.path, fmt.Errorf("it has no %s", name))
			}
		}
		return nil
	})
	if err != nil || !fresh { // so that a full disk keeps nobody from what is there
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
		err = durable.SyncDir(filepath.Dir(f.path)) // the name outlasts the machine, too
	}
	if err != nil {
		return fmt.Errorf("begin a file of deferred requests, %s: %w", f.path, err)
	}
	return nil
}

// mostFaults is after how many faults nobody waits for the end of a check: pages that refer to
// each other in a circle have no end of them.
const mostFaults = 1000

// check looks at every page of the file. bbolt does that on a goroutine of its own, which reads the
// file until it is done: it must not be closed before.
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

// loaded puts an entry of the file where it belongs. The wall clock may have been set meanwhile:
// nobody waits longer than was promised.
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

// Close implements Store. What was ended is recorded first, if the disk takes it.
func (f *File) Close() error {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.w.close()
	return f.db.Close()
}
