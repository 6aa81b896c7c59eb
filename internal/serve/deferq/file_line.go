package deferq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"
)

// append appends an item to its line.
func (f *File) append(l *line, it *item, now time.Time) {
	it.line = l
	l.items = append(l.items, it)
	if len(l.items) == 1 && !l.taken {
		f.add(l, now)
	}
}

// forget removes a line if it is empty.
func (f *File) forget(l *line) {
	if len(l.items) == 0 && l.pending == 0 && !l.taken {
		f.remove(l)
		delete(f.lines, l.of)
	}
}

// Busy implements Store.
func (f *File) Busy(_ context.Context, of Line) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lines[of] != nil, nil
}

// Room implements Store.
func (f *File) Room(_ context.Context, of Line, size int64, b Bounds) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.room(of, size, b)
}

func (f *File) room(of Line, size int64, b Bounds) error {
	n, bytes := int64(0), int64(0)
	if l := f.lines[of]; l != nil {
		n, bytes = int64(len(l.items)+l.pending), l.bytes
	}
	switch {
	case f.closed:
		return ErrClosed
	case f.rules[of.Rule] >= b.Places || n >= b.PerKey || bytes+size > b.KeyBytes || f.bytes-f.spare+size > f.o.Max:
		return ErrFull
	}
	return nil
}

// Add implements Store.
func (f *File) Add(_ context.Context, e *Entry, b Bounds) (before int, err error) {
	e.V, e.State = Version, Waiting
	it := newItem(e)
	size := it.size
	f.mu.Lock()
	if err := f.room(e.Line, size, b); err != nil {
		f.mu.Unlock()
		return 0, err
	}
	f.makeRoom(size)
	f.number(it)
	l := f.lineOf(e.Line)
	l.pending++
	l.bytes += size
	f.rules[it.rule]++
	f.bytes += size
	added := f.w.push(func(tx *bolt.Tx) error { return put(tx, waitBucket, it.seq, e) }, func(err error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		l.pending--
		if err != nil {
			l.bytes -= size
			f.leave(it)
			f.forget(l)
			return
		}
		before = len(l.items)
		f.byID[it.id] = it
		f.append(l, it, time.Now())
	})
	f.mu.Unlock()
	if err := <-added; err != nil {
		return 0, fmt.Errorf("keep the request in %s: %w", f.path, err)
	}
	return before, nil
}

// number gives an item the next sequence number.
func (f *File) number(it *item) {
	it.seq = f.nextSeq
	f.nextSeq++
}

// leave subtracts an item from the totals.
func (f *File) leave(it *item) {
	f.bytes -= it.size
	if f.rules[it.rule]--; f.rules[it.rule] == 0 {
		delete(f.rules, it.rule)
	}
}

// makeRoom removes ended entries until there is room for size more bytes, or none is left: first done
// ones, then dead ones, the oldest first.
func (f *File) makeRoom(size int64) {
	for f.bytes+size > f.o.Max {
		switch {
		case len(f.done) > 0:
			f.drop(&f.done)
		case len(f.dead) > 0:
			f.drop(&f.dead)
		default:
			return
		}
	}
}

// drop removes the first entry of a list of ended ones.
func (f *File) drop(all *[]*item) {
	it := (*all)[0]
	*all = slices.Delete(*all, 0, 1)
	delete(f.byID, it.id)
	f.bytes -= it.size
	f.spare -= it.size
	f.w.later(func(tx *bolt.Tx) error { return remove(tx, it.seq) }, nil)
}

// purge removes entries that ended long ago.
func (f *File) purge() {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	for len(f.done) > 0 && now.Sub(f.done[0].ended) > f.o.Results {
		f.drop(&f.done)
	}
	for len(f.dead) > 0 && now.Sub(f.dead[0].ended) > f.o.Dead {
		f.drop(&f.dead)
	}
}

// Next implements Store. While more than maxUnwritten changes are not written to disk, it returns no
// entries.
func (f *File) Next(ctx context.Context) (*Entry, error) {
	for {
		if f.w.unwritten() > maxUnwritten {
			if err := f.w.flushed(ctx); err != nil {
				return nil, err
			}
		}
		f.mu.Lock()
		now := time.Now()
		l, due := f.schedule.next(now)
		var it *item
		if l != nil {
			it = l.items[0]
			l.taken, it.state = true, Trying
		}
		changed := f.changed
		f.mu.Unlock()
		if l != nil {
			e, err := f.read(it, true)
			if err == nil {
				return e, nil
			}
			var fault *faultError
			if errors.As(err, &fault) && now.Before(it.expires) { // the disk may recover
				f.putOff(l, it, now.Add(faultEvery))
				return nil, err
			}
			// The record cannot be read: the line goes on, and the entry is a dead letter.
			e = &Entry{
				V: Version, ID: it.id, Line: l.of, Accepted: it.accepted, Attempts: it.attempts,
				State: Dead, Reason: "its record cannot be read: " + err.Error(), Ended: now,
			}
			f.o.Log.Error("a deferred request cannot be read", "file", f.path, "err", err)
			f.End(e)
			continue
		}
		if err := await(ctx, changed, due); err != nil {
			return nil, err
		}
	}
}

// faultEvery is how often an unreadable entry is read again.
const faultEvery = 10 * time.Second

// putOff gives a line back; its first entry is not tried before next.
func (f *File) putOff(l *line, it *item, next time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	it.state, it.next = Waiting, next
	l.taken = false
	f.add(l, time.Now())
}

// await returns when changed is closed or due has come; the zero time never comes.
func await(ctx context.Context, changed <-chan struct{}, due time.Time) error {
	var alarm <-chan time.Time
	if !due.IsZero() {
		t := time.NewTimer(time.Until(due))
		defer t.Stop()
		alarm = t.C
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-changed:
	case <-alarm:
	}
	return nil
}

// Again implements Store.
func (f *File) Again(e *Entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	it := f.byID[e.ID]
	if it == nil || it.line == nil {
		return
	}
	changed := it.attempts != e.Attempts
	it.state, it.attempts, it.next, it.reason = Waiting, e.Attempts, e.Next, e.Reason
	it.line.taken = false
	f.add(it.line, time.Now())
	if changed { // a change of Next alone is not worth a write
		record := *e
		record.State = Waiting
		f.w.later(func(tx *bolt.Tx) error { return putRecord(tx, waitBucket, it.seq, &record) }, nil)
	}
}

// End implements Store.
func (f *File) End(e *Entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if it := f.byID[e.ID]; it != nil && it.line != nil {
		f.end(it, e)
	}
}

// maxUnwritten bounds the ends that are only in memory. They and attempts in flight are the
// requests that are sent again if the process dies.
const maxUnwritten = 256

// end removes an item from its line. e is its end, which is written later.
func (f *File) end(it *item, e *Entry) {
	l := it.line
	i := slices.Index(l.items, it)
	l.items = slices.Delete(l.items, i, i+1)
	if i == 0 {
		l.taken = false
	}
	l.bytes -= it.size
	f.leave(it)
	record := e.ended()
	it.line, it.state, it.attempts, it.reason, it.ended, it.unsaved = nil, e.State, e.Attempts, e.Reason, e.Ended, &record
	it.size = record.size()
	if e.State == Done {
		f.done = append(f.done, it)
	} else {
		f.dead = append(f.dead, it)
	}
	f.bytes += it.size
	f.spare += it.size
	f.w.later(func(tx *bolt.Tx) error {
		if err := tx.Bucket(waitBucket).Delete(key(it.seq)); err != nil {
			return err
		}
		if record.State == Done || record.Request.Method == "" { // it will not be sent again
			if err := tx.Bucket(bodyBucket).Delete(key(it.seq)); err != nil {
				return err
			}
		}
		return putRecord(tx, endedBucket, it.seq, &record)
	}, func() {
		f.mu.Lock()
		it.unsaved = nil
		f.mu.Unlock()
	})
	switch {
	case len(l.items) > 0 && !l.taken:
		f.add(l, time.Now())
	case len(l.items) == 0:
		f.remove(l)
		f.forget(l)
	}
	f.makeRoom(0) // an answer may be much longer than its request
}
