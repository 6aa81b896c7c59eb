// Package board keeps the same few records on every instance of a fleet: what operators
// have ordered, such as bans. The instance that puts a record on the board has it at once; the
// others look every quarter of a second. The package does not read what the records say.
//
//	Put, End → here, at once, and in the file → the shared table → the others' next look
//
// Every instance keeps all records. While the table cannot be reached, an order holds on the
// instance that made it, and is posted later; a table that comes back empty is filled again; a
// file lets records survive a restart. The latest order about a record wins, by the clock of the
// table; an instance that has seen an order can always replace it, whatever the clocks say. The
// fleet remembers that a record was ended (a tombstone), so that an instance that was cut off
// does not bring it back.
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

// Options of [Open]. The zero value is the board of one process; its records end with the process.
type Options struct {
	// Table is what the fleet shares; nil means that this instance is alone.
	Table chain.Table
	// Self is this instance.
	Self Node
	// Members lists the instances of the fleet; nil means that there are no others.
	Members func(context.Context) ([]Member, error)
	// File keeps all records on this machine; "" means no file.
	File string
	// OnChange, unless nil, is given to [Board.Watch] by Open.
	OnChange func([]Record)
	// OnStart, unless nil, is called by Start: from then on the others may hear that this
	// instance follows the board.
	OnStart func()
	// Every is how often the table is looked at; 0 means DefaultEvery.
	Every time.Duration
	// Timeout bounds each call of the table; 0 means DefaultTimeout.
	Timeout time.Duration
	// Confirm is how long Put and End wait for the other instances to say that they have
	// the record; 0 means DefaultConfirm, less than 0 that they do not wait.
	Confirm time.Duration
	// Log gets what an operator should know; nil means no log.
	Log *slog.Logger
}

// Board is a replica of the records of a fleet. Use [Open]. Its methods may be called from
// any number of goroutines.
type Board struct {
	o         Options
	table     chain.Table
	by        uint32                   // random: marks the orders of this process
	now       atomic.Pointer[[]Record] // what All returns, as of the last change
	questions questions
	lines     journal

	mu       sync.Mutex // also held while the file is written and watchers are told
	records  map[string]*Record
	pending  map[string]bool // to be posted
	ordering map[string]int  // how many calls of order are posting each
	lastRev  int64           // the highest that this process has used or seen
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

// Open returns a board with the records of the file, if that exists. It fails if the file cannot
// be read. The board does not look at the table before Start.
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
	b.questions.open()
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

// Start begins to look at the table, until Close.
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

// Close stops looking at the table. Records stay in force on the other instances and in the file.
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
		b.questions.wait()
	})
}

// Self returns this instance.
func (b *Board) Self() Node { return b.o.Self }

// All returns the records in force, the oldest order first. The slice is the caller's, the
// bodies are read-only.
func (b *Board) All() []Record {
	now := time.Now()
	return slices.DeleteFunc(slices.Clone(*b.now.Load()), func(r Record) bool { return r.over(now) })
}

// Watch calls f with the records in force, now and after every change, one call at a
// time. f must not call Put, End or Watch. It is not called when a record expires: it has to
// look at Expires.
func (b *Board) Watch(f func([]Record)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watchers = append(b.watchers, f)
	f(b.All())
}

// snapshotLocked updates what All returns.
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

// commitLocked puts changed records in force: it updates what All returns, writes the file and
// calls the watchers. The error is that of the file.
func (b *Board) commitLocked() error {
	b.snapshotLocked()
	err := b.saveLocked()
	for _, f := range b.watchers {
		f(b.All())
	}
	return err
}

// mergeLocked replaces the record of the same ID by r if r is newer, and reports whether it did.
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

// nextRevLocked returns a Rev for an order that is made now: higher than all that this
// process has seen, whatever the clocks say.
func (b *Board) nextRevLocked() int64 {
	b.lastRev = max(b.lastRev+1, min(b.is.time().UnixMicro(), latestRev))
	return b.lastRev
}

// latestRev bounds the Rev that a clock gives: one that is far ahead leaves room for later orders.
const latestRev = 1 << 52

// pruneLocked forgets records that need not be kept any longer, and reports whether there were any.
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

// inForceLocked counts the records that are in force.
func (b *Board) inForceLocked() (n int) {
	now := time.Now()
	for _, r := range b.records {
		if !r.Ended && !r.over(now) {
			n++
		}
	}
	return n
}

// Put orders a record, which replaces the one with the same ID. It is in force here when Put
// returns without an error; Reach says on which other instances.
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
