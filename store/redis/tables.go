package redis

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"tidegate.dev/tidegate/internal/chain"
)

// shardTables is the chain.Table of shards: that of the first shard, by name, that answers.
// Rows are also copied to all others, and read from all once at the beginning and when one has
// come back. So none is lost with a shard, nor when the first is another one. Package board
// keeps a copy of all rows, writes those that are missing, and knows another table by its
// epoch. Lines of the journal stay on the shard that they were written to; all are read.
//
// While shards are changed, the first is that of the former list, as for instances that have
// only that.
type shardTables struct {
	tables []fleetTable
	epoch  string // for tables that are empty

	mu     sync.Mutex
	out    map[*endpoint]time.Time // until when those that failed are asked last; under mu
	copied bool                    // rows were copied everywhere; under mu
	next   time.Time               // not before; under mu
}

var _ chain.Table = (*shardTables)(nil)

const (
	tableRetry  = 3 * time.Second  // when a table that failed is asked first again
	copyTimeout = 10 * time.Second // of copying
)

func newShardTables(s *Store) *shardTables {
	t := &shardTables{epoch: rand.Text(), out: make(map[*endpoint]time.Time)}
	for _, e := range slices.Concat(byName(s.was), byName(s.endpoints)) {
		if !slices.ContainsFunc(t.tables, func(known fleetTable) bool { return known.at == e }) {
			t.tables = append(t.tables, fleetTable{s, e})
		}
	}
	return t
}

// order returns the tables as they are to be asked: those that failed of late last.
func (t *shardTables) order() []fleetTable {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	var well, out []fleetTable
	for _, table := range t.tables {
		if now.Before(t.out[table.at]) || table.at.gone() {
			out = append(out, table)
		} else {
			well = append(well, table)
		}
	}
	return append(well, out...)
}

// note remembers whether a table has failed.
func (t *shardTables) note(at *endpoint, failed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if failed {
		t.out[at], t.copied = time.Now().Add(tableRetry), false
	} else {
		delete(t.out, at)
	}
}

// join copies rows in the background, unless that was done, or a shard is away.
func (t *shardTables) join() {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if t.copied || now.Before(t.next) || slices.ContainsFunc(t.tables, func(one fleetTable) bool { return one.at.gone() }) {
		return
	}
	t.copied, t.next = true, now.Add(tableRetry)
	go func() {
		ctx, end := context.WithTimeout(context.Background(), copyTimeout)
		defer end()
		t.copyAll(ctx)
	}()
}

// copyAll copies the newest of all rows to every table.
func (t *shardTables) copyAll(ctx context.Context) {
	newest := make(map[string]chain.Row)
	for _, table := range t.tables {
		rows, err := table.all(ctx)
		if err != nil {
			t.note(table.at, true)
		}
		for _, r := range rows {
			if old := newest[r.ID]; r.Newer(&old) {
				newest[r.ID] = r
			}
		}
	}
	t.copy(ctx, slices.Collect(maps.Values(newest)))
}

// copy writes rows to every table that answers.
func (t *shardTables) copy(ctx context.Context, rows []chain.Row) {
	var all sync.WaitGroup
	for _, table := range t.tables {
		all.Go(func() {
			for some := range slices.Chunk(rows, chain.MaxRowsAtOnce) {
				if _, _, err := table.Post(ctx, t.epoch, some); err != nil && !errors.Is(err, chain.ErrTableFull) {
					t.note(table.at, true)
					return
				}
			}
		})
	}
	all.Wait()
}

// all reads all rows of a table.
func (t fleetTable) all(ctx context.Context) (rows []chain.Row, err error) {
	for since := int64(0); ; {
		news, err := t.Look(ctx, since)
		if err != nil {
			return rows, err
		}
		var ids []string
		for _, c := range news.Changed {
			ids, since = append(ids, c.ID), c.Version
		}
		for some := range slices.Chunk(ids, chain.MaxRowsAtOnce) {
			part, err := t.Rows(ctx, some)
			if err != nil {
				return rows, err
			}
			rows = append(rows, slices.DeleteFunc(part, func(r chain.Row) bool { return r.Rev == 0 })...)
		}
		if len(ids) < chain.MaxChanged {
			return rows, nil
		}
	}
}

// first does something with the first table that answers. Each has half of the time that is
// left, but the last has all of it.
func (t *shardTables) first(ctx context.Context, do func(context.Context, fleetTable) error) error {
	ctx, end := t.tables[0].s.withDeadline(ctx)
	defer end()
	var all error
	order := t.order()
	for i, table := range order {
		own, stop := ctx, context.CancelFunc(func() {})
		if at, ok := ctx.Deadline(); ok && i < len(order)-1 {
			own, stop = context.WithTimeout(ctx, time.Until(at)/2)
		}
		err := do(own, table)
		stop()
		answered := err == nil || errors.Is(err, chain.ErrTableFull) || errors.Is(err, chain.ErrBusy)
		if t.note(table.at, !answered); answered {
			return err
		}
		all = errors.Join(all, err)
		if ctx.Err() != nil {
			break
		}
	}
	return all
}

// Look implements chain.Table.
func (t *shardTables) Look(ctx context.Context, since int64) (news chain.TableNews, err error) {
	t.join()
	err = t.first(ctx, func(ctx context.Context, one fleetTable) (err error) {
		news, err = one.Look(ctx, since)
		return err
	})
	return news, err
}

// Rows implements chain.Table.
func (t *shardTables) Rows(ctx context.Context, ids []string) (rows []chain.Row, err error) {
	err = t.first(ctx, func(ctx context.Context, one fleetTable) (err error) {
		rows, err = one.Rows(ctx, ids)
		return err
	})
	return rows, err
}

// Post implements chain.Table.
func (t *shardTables) Post(ctx context.Context, epoch string, rows []chain.Row) (now []chain.Row, inForce string, err error) {
	err = t.first(ctx, func(ctx context.Context, one fleetTable) (err error) {
		now, inForce, err = one.Post(ctx, epoch, rows)
		return err
	})
	if err == nil {
		own := slices.Clone(rows)
		go func() {
			ctx, end := context.WithTimeout(context.WithoutCancel(ctx), copyTimeout)
			defer end()
			t.copy(ctx, own)
		}()
	}
	return now, inForce, err
}

// Ask implements chain.Table.
func (t *shardTables) Ask(ctx context.Context, id, text string) error {
	return t.first(ctx, func(ctx context.Context, one fleetTable) error { return one.Ask(ctx, id, text) })
}

// Question implements chain.Table.
func (t *shardTables) Question(ctx context.Context, id string) (text string, err error) {
	err = t.first(ctx, func(ctx context.Context, one fleetTable) (err error) {
		text, err = one.Question(ctx, id)
		return err
	})
	return text, err
}

// Answer implements chain.Table.
func (t *shardTables) Answer(ctx context.Context, id, text string) error {
	return t.first(ctx, func(ctx context.Context, one fleetTable) error { return one.Answer(ctx, id, text) })
}

// Answers implements chain.Table.
func (t *shardTables) Answers(ctx context.Context, id string, from int) (all []string, err error) {
	err = t.first(ctx, func(ctx context.Context, one fleetTable) (err error) {
		all, err = one.Answers(ctx, id, from)
		return err
	})
	return all, err
}

// Append implements chain.Table.
func (t *shardTables) Append(ctx context.Context, lines []string) error {
	return t.first(ctx, func(ctx context.Context, one fleetTable) error { return one.Append(ctx, lines) })
}

// Journal implements chain.Table: the last lines of every shard, one shard after the other.
// With lines and an error, some shards have not answered.
func (t *shardTables) Journal(ctx context.Context, n int) (all []string, err error) {
	ctx, end := t.tables[0].s.withDeadline(ctx)
	defer end()
	parts, errs := make([][]string, len(t.tables)), make([]error, len(t.tables))
	var read sync.WaitGroup
	for i, table := range t.tables {
		read.Go(func() { parts[i], errs[i] = table.Journal(ctx, n) })
	}
	read.Wait()
	return slices.Concat(parts...), errors.Join(errs...)
}
