package board

import (
	"context"
	"fmt"

	"tidegate.dev/tidegate/internal/chain"
)

// attempts is how often an order is posted if the table has a later one each time.
const attempts = 5

// postOrder posts an order that is made now. It replaces what the table has, even if a clock that
// is ahead gave that a later Rev: r then gets a later one still.
func (b *Board) postOrder(ctx context.Context, r *Record) error {
	for range attempts {
		there, err := b.postRows(ctx, []Record{*r})
		if err != nil {
			b.assert(r)
			return err
		}
		if there[0].Rev == 0 { // the table has dropped it as outdated: its clock was set
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

// keepLonger reads the clock of the table again, and extends by it how long r is kept.
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

// assert gives r a later Rev than anything that this instance has seen, so that it is the latest
// order about its record again, and marks it as pending. It reports false, and does nothing, if a
// later order of this instance has replaced r.
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

// postRows writes records to the table, and returns the rows that it then has under their IDs.
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

// postAgain posts the records with these IDs, at most chain.MaxRowsAtOnce, and merges what is
// newer in the table.
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

// postedLocked handles the answer to a record that was sent: there is what the table now has. It
// reports whether that changed a record here.
func (b *Board) postedLocked(sent *Record, there *chain.Row) bool {
	local := b.records[sent.ID]
	if local == nil || local.same(sent) && b.ordering[sent.ID] == 0 {
		// If the table had no room for it, or dropped it as outdated, the next compare
		// marks it as pending again.
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
	if !ok || !b.mergeLocked(newer) { // recordOf cannot read rows of a later version of this program
		return false
	}
	b.o.Log.Info("an order of this instance was overtaken by a later one", "id", sent.ID)
	return true
}
