// Package board lets every instance of a fleet have the same few records: what operators
// have ordered, such as bans. Whoever puts a record on the board has it at once; the others
// look every quarter of a second. It knows nothing of what the records say.
//
//	Put, End → here, at once, and in the file → the shared table → the others' next look
//
// Every instance keeps all records. While the table cannot be reached, what is ordered holds
// here, and is posted later; a table that comes back empty is filled again; a file lets
// records survive a restart. The last order about a record counts, by the clock of the table;
// whoever has seen an order can replace it, whatever the clocks say. It is remembered that a
// record was ended, so that an instance that was cut off does not bring it back.
//
// The board also carries questions to all instances, and the lines of a journal.
//
// Start with [Open].
package board

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate/internal/chain"
)

// Defaults of Options.
const (
	DefaultEvery   = 250 * time.Millisecond
	DefaultTimeout = time.Second
	DefaultConfirm = AskTimeout
)

// Options of [Open]. The zero value is the board of one process, which is gone with it.
type Options struct {
	// Table is what the fleet shares; nil means that this instance is alone.
	Table chain.Table
	// Self is this instance.
	Self Node
	// Members lists the instances of the fleet; nil means that there are no others.
	Members func(context.Context) ([]Member, error)
	// File keeps all records on this machine; "" means none does.
	File string
	// OnChange is [Board.Watch] from the start on; nil means that nobody does.
	OnChange func([]Record)
	// OnStart is called by Start, when the others may hear that this instance follows the
	// board; nil means that nothing is.
	OnStart func()
	// Every is how often the table is looked at; 0 means DefaultEvery.
	Every time.Duration
	// Timeout of a call of the table; 0 means DefaultTimeout.
	Timeout time.Duration
	// Confirm is how long Put and End wait for the other instances to say that they have
	// the record; 0 means DefaultConfirm, less than 0 that they do not wait.
	Confirm time.Duration
	// Log is told what an operator should know; nil means that nobody is.
	Log *slog.Logger
}

// Board is a replica of the records of a fleet. Use [Open]. Its methods may be called from
// any number of goroutines.
type Board struct {
	o     Options
	table chain.Table
	by    uint32 // this process, among those that order
	now   atomic.Pointer[[]Record]
	mail  mail
	lines journal

	mu       sync.Mutex // also held while the file is written and watchers are told
	records  map[string]*Record
	pending  map[string]bool // to be posted
	ordering map[string]int  // being posted by whoever orders them
	lastRev  int64           // that this process has used or seen
	watchers []func([]Record)
	file     file
	closed   bool
	handed   bool // a successor has the records now

	is     status        // of the table
	wake   chan struct{} // has an element when the loop is to look at once
	stop   context.CancelFunc
	done   sync.WaitGroup
	start  sync.Once
	ending sync.Once
}

// Open returns a board with the records of the file, if that exists. One that cannot be read
// is an error. It does not look at the table before Start.
func Open(o Options) (*Board, error) {
	o.Every = orDefault(o.Every, DefaultEvery)
	o.Timeout = orDefault(o.Timeout, DefaultTimeout)
	o.Confirm = orDefault(o.Confirm, DefaultConfirm)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	b := &Board{
		o: o, table: o.Table, by: binary.LittleEndian.Uint32(random[:]),
		records: make(map[string]*Record), pending: make(map[string]bool), ordering: make(map[string]int),
		file: file{name: o.File}, wake: make(chan struct{}, 1),
	}
	b.is.epoch, b.is.fresh = "", rand.Text()
	b.mail.open()
	if o.File != "" {
		s, err := readState(o.File)
		if err != nil {
			return nil, err
		}
		b.adopt(s)
	}
	b.snapshotLocked()
	if o.OnChange != nil {
		b.Watch(o.OnChange)
	}
	return b, nil
}

func orDefault(d, fallback time.Duration) time.Duration {
	if d == 0 {
		return fallback
	}
	return d
}

// Start looks at the table from now on, until Close.
func (b *Board) Start() {
	b.start.Do(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.closed {
			return
		}
		ctx, stop := context.WithCancel(context.Background())
		b.stop = stop
		b.is.started.Store(true)
		b.done.Go(func() { b.run(ctx) })
		if b.o.OnStart != nil {
			b.o.OnStart()
		}
	})
}

// Close ends looking. What is in force stays so in the other instances and in the file.
func (b *Board) Close() {
	b.ending.Do(func() {
		b.mu.Lock()
		b.closed = true
		stop := b.stop
		b.mu.Unlock()
		if stop != nil {
			stop()
		}
		b.done.Wait()
		b.mail.wait()
	})
}

// Self is this instance.
func (b *Board) Self() Node { return b.o.Self }

// All returns the records in force, the oldest order first. The slice is the caller's, the
// bodies are read-only.
func (b *Board) All() []Record {
	now := time.Now()
	return slices.DeleteFunc(slices.Clone(*b.now.Load()), func(r Record) bool { return r.over(now) })
}

// Watch calls f with the records in force, now and whenever they have changed, one call at a
// time. f must not call Put, End or Watch. Records that expire are not a change: f goes by
// their Expires.
func (b *Board) Watch(f func([]Record)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watchers = append(b.watchers, f)
	f(b.All())
}

// snapshotLocked is what All returns from now on.
func (b *Board) snapshotLocked() {
	now := time.Now()
	all := make([]Record, 0, len(b.records))
	for _, r := range b.records {
		if !r.Ended && !r.over(now) {
			all = append(all, *r)
		}
	}
	slices.SortFunc(all, func(a, b Record) int {
		if a.newer(&b) {
			return 1
		}
		return -1
	})
	b.now.Store(&all)
}

// commitLocked puts a change in force: in the file first, then here.
func (b *Board) commitLocked() error {
	b.snapshotLocked()
	err := b.saveLocked()
	for _, f := range b.watchers {
		f(b.All())
	}
	return err
}

// mergeLocked takes r over if it counts, and reports whether that is so.
func (b *Board) mergeLocked(r *Record) bool {
	b.lastRev = max(b.lastRev, r.Rev)
	old := b.records[r.ID]
	if r.same(old) {
		old.version = max(old.version, r.version)
		return false
	}
	if !r.newer(old) {
		return false
	}
	b.records[r.ID] = r
	return true
}

// nextRevLocked returns a Rev for an order that is made now: later than all that this
// process has seen, whatever the clocks say.
func (b *Board) nextRevLocked() int64 {
	b.lastRev = max(b.lastRev+1, min(b.is.time().UnixMicro(), latestRev))
	return b.lastRev
}

// latestRev leaves room for later orders above that of a clock that is far off.
const latestRev = 1 << 52

// pruneLocked forgets records whose time is over, and reports whether there were any.
func (b *Board) pruneLocked() bool {
	now, before := time.Now(), len(b.records)
	if by := b.is.time(); by.Before(now) { // a clock that is ahead must not end anything
		now = by
	}
	maps.DeleteFunc(b.records, func(id string, r *Record) bool {
		return b.ordering[id] == 0 && !r.keep.After(now)
	})
	return len(b.records) < before
}

// inForceLocked counts the records that are.
func (b *Board) inForceLocked() (n int) {
	now := time.Now()
	for _, r := range b.records {
		if !r.Ended && !r.over(now) {
			n++
		}
	}
	return n
}

// Put orders a record, and replaces the one with its ID. It is in force here when Put returns
// without an error; Reach says where else.
func (b *Board) Put(ctx context.Context, r Record) (Reach, error) {
	if err := r.check(); err != nil {
		return Reach{}, err
	}
	r.Body, r.Ended = slices.Clone(r.Body), false
	if !r.Expires.IsZero() {
		r.Expires = r.Expires.Truncate(time.Millisecond)
		if r.over(time.Now()) {
			return Reach{}, fmt.Errorf("%s would have ended at %s", r.ID, r.Expires.UTC().Format(time.RFC3339))
		}
	}
	return b.order(ctx, r.ID, func(old *Record) (Record, error) {
		if (old == nil || old.Ended || old.over(time.Now())) && b.inForceLocked() >= MaxRecords {
			return r, fmt.Errorf("%w: %d; end some first", ErrFull, MaxRecords)
		}
		return r, nil
	})
}

// End ends a record before its time.
func (b *Board) End(ctx context.Context, id string) (Reach, error) {
	return b.order(ctx, id, func(old *Record) (Record, error) {
		if old == nil || old.Ended || old.over(time.Now()) {
			return Record{}, fmt.Errorf("%.40q: %w", id, ErrUnknown)
		}
		r := *old
		r.Ended = true
		return r, nil
	})
}

// order makes a change in force here, then posts it.
func (b *Board) order(ctx context.Context, id string, change func(old *Record) (Record, error)) (Reach, error) {
	b.mu.Lock()
	if b.closed || b.handed {
		b.mu.Unlock()
		return Reach{}, ErrClosed
	}
	r, err := change(b.records[id])
	if err != nil {
		b.mu.Unlock()
		return Reach{}, err
	}
	r.Rev, r.by, r.version, r.keep = b.nextRevLocked(), b.by, 0, r.kept(b.is.latest())
	kept := r
	b.mergeLocked(&kept)
	if b.table != nil {
		b.pending[id] = true
	}
	b.ordering[id]++
	fileErr := b.commitLocked()
	b.mu.Unlock()
	reach := b.hereOnly(fileErr)
	if b.table != nil {
		postErr := b.postOrder(ctx, &r)
		b.confirm(ctx, &reach, r, postErr)
	}
	b.mu.Lock()
	if b.ordering[id]--; b.ordering[id] == 0 {
		delete(b.ordering, id)
	}
	b.mu.Unlock()
	return reach, nil
}
