package board

import (
	"context"
	crand "crypto/rand"
	"math/rand/v2"
	"slices"
	"time"

	"tidegate.dev/tidegate/internal/chain"
)

// run is the goroutine of a board: it looks at the table until ctx ends.
func (b *Board) run(ctx context.Context) {
	for {
		pause := b.o.Every
		if b.table != nil {
			b.look(ctx)
			b.postPending(ctx)
			b.deliver(ctx)
		} else {
			pause = max(pause, time.Second)
		}
		b.prune()
		// The jitter keeps instances from looking at the same time.
		timer := time.NewTimer(pause*9/10 + rand.N(pause/10+1))
		select {
		case <-timer.C:
		case <-b.wake:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// wakeUp makes run look at the table at once.
func (b *Board) wakeUp() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// look merges what has changed in the table, and answers questions.
func (b *Board) look(ctx context.Context) {
	b.mu.Lock()
	since := b.is.version
	b.mu.Unlock()
	news, err := b.lookAt(ctx, since)
	if err == nil && b.lost(&news) {
		err = b.compare(ctx)
	} else if err == nil {
		err = b.follow(ctx, news, nil)
	}
	b.looked(ctx, err)
	if err == nil {
		b.answerAll(ctx, news.Open)
	}
}

func (b *Board) lookAt(ctx context.Context, since int64) (chain.TableNews, error) {
	ctx, cancel := context.WithTimeout(ctx, b.o.Timeout)
	defer cancel()
	news, err := b.table.Look(ctx, since)
	if err == nil {
		b.mu.Lock()
		if b.is.at.IsZero() { // earlier orders were dated by the clock of this process
			for _, r := range b.records {
				if r.by == b.by {
					if keep := r.kept(news.Now); keep.After(r.keep) {
						r.keep = keep
					}
				}
			}
		}
		b.is.read(news.Now)
		b.mu.Unlock()
	}
	return news, err
}

// lost reports whether the table may have lost records, so that all have to be compared.
func (b *Board) lost(news *chain.TableNews) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	is := &b.is
	return is.compareNow || news.Epoch != is.epoch || news.Version < is.version || !is.failedAt.IsZero() ||
		is.compared.IsZero() || time.Since(is.compared) > compareEvery
}

// looked records whether a look succeeded.
func (b *Board) looked(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	is, now := &b.is, time.Now()
	if is.why = err; err == nil {
		if is.told {
			b.o.Log.Info("orders of operators are shared with the other instances again")
		}
		is.failedAt, is.told, is.synced = time.Time{}, false, now
		is.applied.Store(is.version)
		b.saveSyncedLocked()
		return
	}
	if is.failedAt.IsZero() {
		is.failedAt = now
	}
	if !is.told && now.Sub(is.failedAt) >= tellAfter {
		is.told = true
		b.o.Log.Warn("orders of operators are not shared with the other instances: those made here hold here, and are passed on later", "err", err)
	}
}

// tellAfter is how long looks must fail before the log says so.
const tellAfter = 5 * time.Second

// follow merges the changes in news, and those that news had no room for. If all is not nil, it
// gets the version of every row that was listed.
func (b *Board) follow(ctx context.Context, news chain.TableNews, all map[string]int64) error {
	changed := false
	defer func() {
		if changed { // once for all of them: there may be thousands
			b.mu.Lock()
			b.commitInBackgroundLocked()
			b.mu.Unlock()
		}
	}()
	for {
		some, err := b.take(ctx, news.Changed)
		if changed = changed || some; err != nil {
			return err
		}
		if all != nil {
			for _, c := range news.Changed {
				all[c.ID] = c.Version
			}
		}
		full := len(news.Changed) == chain.MaxChanged
		version := news.Version
		if full {
			version = news.Changed[len(news.Changed)-1].Version
		}
		b.mu.Lock()
		b.is.version = max(b.is.version, version)
		b.mu.Unlock()
		if !full {
			return nil
		}
		if news, err = b.lookAt(ctx, version); err != nil {
			return err
		}
	}
}

// take reads the changed rows that are not known yet, and merges them. It reports whether that
// changed any record.
func (b *Board) take(ctx context.Context, changed []chain.RowVersion) (any bool, err error) {
	var ids []string
	b.mu.Lock()
	for _, c := range changed {
		if r := b.records[c.ID]; validID(c.ID) && (r == nil || r.version != c.Version) {
			ids = append(ids, c.ID)
		}
	}
	b.mu.Unlock()
	versions := make(map[string]int64, len(changed))
	for _, c := range changed {
		versions[c.ID] = c.Version
	}
	for some := range slices.Chunk(ids, chain.MaxRowsAtOnce) {
		limited, cancel := context.WithTimeout(ctx, b.o.Timeout)
		rows, err := b.table.Rows(limited, some)
		cancel()
		if err != nil {
			return any, err
		}
		any = b.takeRows(rows, versions) || any
	}
	return any, nil
}

func (b *Board) takeRows(rows []chain.Row, versions map[string]int64) (changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range rows {
		rows[i].Version = versions[rows[i].ID]
		if r, ok := recordOf(&rows[i]); ok && b.mergeLocked(r) {
			changed = true
			if b.ordering[r.ID] == 0 {
				delete(b.pending, r.ID) // a newer order has replaced it
			}
		}
	}
	return changed
}

// compare reads the whole table, merges what is newer there, and marks as pending what is newer
// here or missing there.
func (b *Board) compare(ctx context.Context) error {
	b.mu.Lock()
	b.is.version, b.is.compareNow = 0, false
	b.mu.Unlock()
	news, err := b.lookAt(ctx, 0)
	if err != nil {
		return err
	}
	there := make(map[string]int64)
	b.mu.Lock()
	known := b.is.epoch == news.Epoch
	if b.is.epoch = news.Epoch; !known { // versions of a former table mean nothing
		b.is.fresh = crand.Text()
		for _, r := range b.records {
			r.version = 0
		}
	}
	b.mu.Unlock()
	if err := b.follow(ctx, news, there); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.is.compared = time.Now()
	forgotten := false
	for id, r := range b.records {
		switch version, listed := there[id]; {
		case listed && r.version == version, b.ordering[id] > 0:
		case !listed && known && b.longGoneLocked(r):
			delete(b.records, id)
			forgotten = true
		default:
			b.pending[id] = true
		}
	}
	if forgotten {
		b.commitInBackgroundLocked()
	}
	return nil
}

// longGoneLocked reports whether r, which the table lacks, was surely ended elsewhere: this
// instance, or the file that it began with, was cut off for longer than the table keeps the
// tombstone. Such a record must not come back.
func (b *Board) longGoneLocked(r *Record) bool {
	synced := b.is.synced
	return !synced.IsZero() && time.Since(synced) > tombstoneLife-grace && r.Rev < synced.UnixMicro() && r.Expires.IsZero()
}

// postPending posts the records that the table does not have yet.
func (b *Board) postPending(ctx context.Context) {
	b.mu.Lock()
	var ids []string
	if b.is.why == nil && !b.handed {
		for id := range b.pending {
			if b.ordering[id] == 0 {
				ids = append(ids, id)
			}
		}
	}
	b.mu.Unlock()
	for some := range slices.Chunk(ids, chain.MaxRowsAtOnce) {
		if err := b.postAgain(ctx, some); err != nil {
			b.looked(ctx, err)
			return
		}
	}
}

func (b *Board) prune() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Since(b.file.pruned) < time.Second {
		return
	}
	b.file.pruned = time.Now()
	if b.pruneLocked() {
		b.commitInBackgroundLocked()
	}
}
