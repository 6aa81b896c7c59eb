package board

import (
	"context"
	"fmt"

	"tidegate.dev/tidegate/internal/chain"
)

// attempts is how often an order is posted that finds a later one in its place.
const attempts = 5

// postOrder posts an order that is made now. It replaces what the table has, even if that is
// of a clock that is ahead: r gets a later Rev then.
func (b *Board) postOrder(ctx context.Context, r *Record) error {
	for range attempts {
		there, err := b.postRows(ctx, []Record{*r})
		if err != nil {
			b.assert(r)
			return err
		}
		if there[0].Rev == 0 { // its time is over: the clock of the table was set
			if err := b.keepLonger(ctx, r); err != nil {
				return err
			}
			continue
		}
		b.mu.Lock()
		is := Record{Rev: there[0].Rev, by: there[0].By}
		if is.same(r) {
			if local := b.records[r.ID]; local != nil && local.same(r) {
				local.version = there[0].Version
				delete(b.pending, r.ID)
			}
			b.mu.Unlock()
			return nil
		}
		b.lastRev = max(b.lastRev, is.Rev)
		b.mu.Unlock()
		if !b.assert(r) {
			return nil // it was replaced here meanwhile, and that is posted as well
		}
	}
	return fmt.Errorf("%s is ordered in several places at the same time", r.ID)
}

// keepLonger has r remembered for long enough by the clock that the table has now.
func (b *Board) keepLonger(ctx context.Context, r *Record) error {
	b.mu.Lock()
	version := b.is.version
	b.mu.Unlock()
	if _, err := b.lookAt(ctx, version); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r.keep = r.kept(b.is.latest())
	if local := b.records[r.ID]; local != nil && local.same(r) {
		local.keep = r.keep
	}
	return nil
}

// assert makes r the last order about its record again, with a later Rev than anything that
// this instance has seen. It reports whether that is so: not if r was replaced here.
func (b *Board) assert(r *Record) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	local := b.records[r.ID]
	if local != nil && local.by == b.by && local.Rev > r.Rev {
		return false
	}
	if b.lastRev > r.Rev {
		r.Rev = b.nextRevLocked()
		now := *r
		b.mergeLocked(&now)
		b.commitInBackgroundLocked()
	}
	b.pending[r.ID] = true
	return true
}

// postRows writes records to the table, and returns what it has then.
func (b *Board) postRows(ctx context.Context, records []Record) ([]chain.Row, error) {
	rows := make([]chain.Row, len(records))
	for i := range records {
		rows[i] = records[i].row()
	}
	ctx, cancel := context.WithTimeout(ctx, b.o.Timeout)
	defer cancel()
	b.mu.Lock()
	epoch := b.is.fresh
	b.mu.Unlock()
	there, epoch, err := b.table.Post(ctx, epoch, rows)
	if there != nil {
		b.mu.Lock()
		b.is.posted(epoch)
		b.mu.Unlock()
	}
	return there, err
}

// postAgain posts records that the table does not have, at most chain.MaxRowsAtOnce. What is
// newer there is taken over.
func (b *Board) postAgain(ctx context.Context, ids []string) error {
	var sent []Record
	b.mu.Lock()
	for _, id := range ids {
		if r := b.records[id]; r != nil {
			sent = append(sent, *r)
		} else {
			delete(b.pending, id)
		}
	}
	b.mu.Unlock()
	if len(sent) == 0 {
		return nil
	}
	there, err := b.postRows(ctx, sent)
	if there == nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	changed := false
	for i := range sent {
		changed = b.postedLocked(&sent[i], &there[i]) || changed
	}
	if changed {
		b.commitInBackgroundLocked()
	}
	return err
}

// postedLocked notes what the table has after a record was sent, and reports whether that
// changes anything here.
func (b *Board) postedLocked(sent *Record, there *chain.Row) bool {
	local := b.records[sent.ID]
	if local == nil || local.same(sent) && b.ordering[sent.ID] == 0 {
		// If there is no room, or its time is over by the table's clock, it is tried
		// again when all is compared.
		delete(b.pending, sent.ID)
	}
	is := &Record{Rev: there.Rev, by: there.By}
	if there.Rev == 0 || local == nil {
		return false
	}
	if is.same(sent) {
		if local.same(sent) {
			local.version = there.Version
		}
		return false
	}
	newer, ok := recordOf(there)
	if !ok || !b.mergeLocked(newer) { // a later version of this program may write others
		return false
	}
	b.o.Log.Info("an order of this instance was overtaken by a later one", "id", sent.ID)
	return true
}
