package deferq

import (
	"context"
	"errors"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"
)

// Get implements Store.
func (f *File) Get(_ context.Context, id string) (e *Entry, before int, err error) {
	f.mu.Lock()
	it := f.byID[id]
	if it != nil && it.line != nil {
		before, _ = slices.BinarySearchFunc(it.line.items, it.seq, func(o *item, seq uint64) int {
			if o.seq < seq {
				return -1
			}
			return int(min(o.seq-seq, 1))
		})
	}
	f.mu.Unlock()
	if it == nil {
		return nil, 0, ErrNone
	}
	e, err = f.read(it, false)
	return e, before, err
}

// List implements Store. Entries come in the order in which they were appended to their lines.
func (f *File) List(ctx context.Context, show func(*Entry) bool) error {
	f.mu.Lock()
	all := make([]*item, 0, len(f.byID))
	for _, it := range f.byID {
		all = append(all, it)
	}
	f.mu.Unlock()
	slices.SortFunc(all, func(a, b *item) int { return int(int64(a.seq) - int64(b.seq)) })
	for _, it := range all {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		e, err := f.read(it, false)
		if errors.Is(err, ErrNone) {
			continue
		}
		if err != nil {
			return err
		}
		if !show(e) {
			return nil
		}
	}
	return nil
}

// Retry implements Store.
func (f *File) Retry(ctx context.Context, id string, now time.Time) error {
	f.mu.Lock()
	it := f.byID[id]
	switch {
	case it == nil:
		f.mu.Unlock()
		return ErrNone
	case it.state == Trying:
		f.mu.Unlock()
		return ErrBusy
	case it.state == Done:
		f.mu.Unlock()
		return ErrEnded
	case it.state == Waiting:
		it.next = now
		if l := it.line; l.items[0] == it && !l.taken {
			f.add(l, now)
		}
		f.mu.Unlock()
		return nil
	}
	f.mu.Unlock()
	return f.revive(ctx, it, now)
}

// revive appends a dead entry to its line. The error is ErrEnded if its request was removed, ErrBusy
// if it was revived or dropped meanwhile.
func (f *File) revive(ctx context.Context, it *item, now time.Time) error {
	if err := f.w.flushed(ctx); err != nil { // wait until its end is recorded
		return err
	}
	e, err := f.read(it, true)
	if err != nil {
		return err
	}
	if e.Request.Method == "" {
		return ErrEnded // the request itself was removed
	}
	e.State, e.Next, e.Reason, e.Ended, e.Expires, e.Result = Waiting, time.Time{}, "", time.Time{}, now.Add(e.Keep), nil
	fresh := newItem(e)
	f.mu.Lock()
	i := slices.Index(f.dead, it)
	if i < 0 || f.closed {
		f.mu.Unlock()
		return ErrBusy // it was revived or dropped meanwhile
	}
	f.dead = slices.Delete(f.dead, i, i+1)
	f.bytes -= it.size
	f.spare -= it.size
	f.number(fresh)
	l := f.lineOf(e.Line)
	f.rules[fresh.rule]++
	f.bytes += fresh.size
	l.bytes += fresh.size
	l.pending++
	done := f.w.push(func(tx *bolt.Tx) error {
		return errors.Join(remove(tx, it.seq), put(tx, waitBucket, fresh.seq, e))
	}, func(err error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		l.pending--
		if err != nil { // it stays dead
			l.bytes -= fresh.size
			f.leave(fresh)
			f.forget(l)
			f.dead = append(f.dead, it)
			f.bytes += it.size
			f.spare += it.size
			return
		}
		f.byID[fresh.id] = fresh
		f.append(l, fresh, time.Now())
	})
	f.mu.Unlock()
	return <-done
}

// Drop implements Store.
func (f *File) Drop(ctx context.Context, id, reason string) error {
	e, _, err := f.Get(ctx, id)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	it := f.byID[id]
	switch {
	case it == nil:
		return ErrNone
	case it.state == Trying:
		return ErrBusy
	case it.state == Done:
		return ErrEnded
	case it.state == Dead:
		i := slices.Index(f.dead, it)
		if i < 0 {
			return ErrBusy // it is being revived
		}
		f.dead = slices.Concat([]*item{it}, f.dead[:i], f.dead[i+1:])
		f.drop(&f.dead)
		return nil
	}
	e.State, e.Reason, e.Ended, e.Request, e.Checks = Dead, reason, time.Now(), Request{}, nil // the request itself is removed
	f.end(it, e)
	return nil
}

// Stats implements Store.
func (f *File) Stats(context.Context) (Stats, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := Stats{Done: int64(len(f.done)), Dead: int64(len(f.dead)), Lines: int64(len(f.lines)), Bytes: f.bytes, Max: f.o.Max, Rules: make(map[string]int64)}
	for rule, n := range f.rules {
		s.Rules[rule] = n
		s.Waiting += n
	}
	for _, l := range f.lines {
		if len(l.items) > 0 && (s.Oldest.IsZero() || l.items[0].accepted.Before(s.Oldest)) {
			s.Oldest = l.items[0].accepted
		}
	}
	s.Unwritten, s.Err = f.w.state()
	return s, nil
}
