package redis

import (
	"context"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// How a record is settled over several slots of a cluster or shards, where no script reaches
// all of them:
//
//  1. one script makes the changes of the record's own subject, and marks the record as
//     being settled, with the amount;
//  2. every other subject is changed by a script that leaves a mark of its own beside the
//     counters, and does nothing where it finds that mark;
//  3. the record is deleted, and the marks are made to expire soon.
//
// A caller that finds a record that is being settled continues with the amount in it. So
// each step can fail, or its answer be lost, and Settle can be called again until all is
// done; every change is made once. Whoever deletes the record has settled it.

const (
	// settleLife is how long a record that is being settled is kept for a caller that
	// continues. Marks are kept for twice as long, so that they outlive the record.
	settleLife = 24 * time.Hour
	// settleTime bounds a call of Settle, and markLife is how long marks stay when the
	// record is gone: another caller that has read it may still be at work.
	settleTime = 10 * time.Second
	markLife   = time.Minute
)

// recordAction says what a script that changes counters does with a record, or with a mark.
type recordAction struct {
	key    string // of the record, or of a mark
	act    settleAct
	actual int64         // the true cost, or the number of a post
	life   time.Duration // of the mark or record; 0 means that of act
	at     *endpoint     // that has it; nil means the one that has key
}

// settleAct is what is done, by the number it has in scripts.
type settleAct byte

const (
	settleNothing settleAct = iota
	settleWhole             // delete the record; change nothing if there is none
	settleBegin             // mark the record; change nothing if there is none, or it is marked
	settleOnce              // leave a mark; change nothing if there is one
	settleNumber            // leave the number as a mark; change nothing if there is one as high
)

// life returns how long the mark or the record is kept.
func (a settleAct) life() time.Duration {
	if a == settleOnce {
		return 2 * settleLife
	}
	return settleLife
}

// record is a reservation as it was found.
type record struct {
	settling bool
	actual   int64 // if settling
	at, due  int64 // ticks
	paid     string
	charges  []charge
}

// readRecord reads the record id at an endpoint.
func (s *Store) readRecord(ctx context.Context, at *endpoint, id string) (*record, error) {
	text, err := s.recordText(ctx, at, s.recordKey(id))
	if err != nil {
		return nil, err
	}
	if text == "" {
		return nil, tidegate.ErrSettled
	}
	return parseRecord(text)
}

// recordText reads the record under key; "" means that there is none.
func (s *Store) recordText(ctx context.Context, at *endpoint, key string) (string, error) {
	var head packer
	head.number(float64(s.tag()))
	text, err := at.run(ctx, recordScript(), []string{key}, []string{string(head)})
	if err != nil {
		return "", err
	}
	text, ok := strings.CutPrefix(text, string(head))
	if !ok {
		return "", invalidReply("a reply to another call")
	}
	if text == "" {
		return "", nil
	}
	if len(text) < 2*sha1.Size {
		return "", invalidReply("a record of %d bytes", len(text))
	}
	hash, text := text[:2*sha1.Size], text[2*sha1.Size:]
	if sum := sha1.Sum([]byte(text)); hash != hex.EncodeToString(sum[:]) {
		return "", invalidReply("a record that was changed on the way")
	}
	return text, nil
}

// parseRecord reads what multi.lua wrote: when the record ends, the receipt, when a turn
// that was booked comes, which checks were charged, and the charges. A record that is being
// settled ends at 0, and has the amount at the end.
func parseRecord(text string) (*record, error) {
	const numbers = 5 * 8
	if len(text) < numbers+2 {
		return nil, errRecord
	}
	n, ok := wholeNumbers(text[:numbers])
	if !ok {
		return nil, errRecord
	}
	rec := &record{at: n[1]*algo.Micro + n[2]}
	rec.due = rec.at + n[3]*algo.Micro + n[4]
	if rec.settling = n[0] == 0; rec.settling {
		behind := len(text) - 8
		if behind < numbers+2 {
			return nil, errRecord
		}
		amount := math.Float64frombits(binary.LittleEndian.Uint64([]byte(text[behind:])))
		if !(amount >= 0 && amount <= maxActual) {
			return nil, errRecord
		}
		rec.actual, text = int64(amount), text[:behind]
	}
	checks := int(text[numbers]) | int(text[numbers+1])<<8
	text = text[numbers+2:]
	if len(text) < checks {
		return nil, errRecord
	}
	rec.paid, text = text[:checks], text[checks:]
	if err := json.Unmarshal([]byte(text), &rec.charges); err != nil {
		return nil, errRecord
	}
	return rec, nil
}

// settlement returns the changes that make the charges of a record the actual ones: in the
// slot of the record, which is at an endpoint; elsewhere; and at former owners.
func (s *Store) settlement(rec *record, at *endpoint, id string, actual int64) (here, elsewhere, former []change, err error) {
	before := at == s.formerOf(s.recordKey(id)) // it was written before the shards were changed
	put := func(c change) {
		switch sameSlot := !s.apart() || slotOf(tagOf(c.key)) == slotOf(tagOf(id)); {
		case sameSlot && s.whereOf(&c) == at:
			here = append(here, c)
		case c.former:
			former = append(former, c)
		default:
			elsewhere = append(elsewhere, c)
		}
	}
	for _, c := range rec.charges {
		if c.Check >= 0 {
			if c.Check >= len(rec.paid) || rec.paid[c.Check] != '1' {
				continue // an advisory check that had no room
			}
			c.At, c.Due = rec.at, rec.due
		}
		lim, err := c.Limit.compile()
		if err != nil {
			return nil, nil, nil, fmt.Errorf("%w: %w", errRecord, err)
		}
		if lim.kind == buckets {
			c.At = c.Due + lim.limit.Turn(min(actual, c.Cost))
		}
		one, ok := adjustment(lim, c.Key, c.At, actual-c.Cost)
		if !ok {
			continue
		}
		moved := s.formerOf(c.Key) != nil
		if !c.Former && !(moved && before) {
			put(one)
		}
		// A charge that does not say so may be of the time before, and the former owner's.
		if one.former = true; moved && (c.Former || before || !rec.hasFormer(&c)) {
			put(one)
		}
	}
	return here, elsewhere, former, nil
}

// hasFormer reports whether c was also charged to the former owner of its key, by itself.
func (rec *record) hasFormer(c *charge) bool {
	return slices.ContainsFunc(rec.charges, func(other charge) bool {
		return other.Former && other.Key == c.Key && other.Limit == c.Limit
	})
}

// settleFormer makes changes at former owners, and returns the marks that it has left there. What fails is
// left out.
func (s *Store) settleFormer(ctx context.Context, id string, changes []change) (marks []recordAction) {
	var all sync.WaitGroup
	for where, some := range byPlace(changes) {
		mark := recordAction{key: s.markKey(id, where.tag), act: settleOnce, at: s.whereOf(&some[0])}
		if mark.at.leftOut() {
			continue
		}
		marks = append(marks, mark)
		all.Go(func() {
			ctx, end := mark.at.untilGone(ctx)
			defer end()
			_, _, _ = s.apply(ctx, some, mark)
		})
	}
	all.Wait()
	return marks
}

// settleApart continues with a record that is being settled. Of several callers at once, the one that
// deletes the record returns nil, and the others ErrSettled: what a caller does next is done once. A caller
// with another amount than the record has leaves the record to the one that began with it.
func (s *Store) settleApart(ctx context.Context, at *endpoint, id string, rec *record, actual int64) error {
	_, elsewhere, former, err := s.settlement(rec, at, id, rec.actual)
	if err != nil {
		return err
	}
	apart := byPlace(elsewhere)
	marks := make([]recordAction, 0, len(apart))
	errs := make([]error, len(apart))
	var all sync.WaitGroup
	for where, changes := range apart {
		mark, failed := recordAction{key: s.markKey(id, where.tag), act: settleOnce, at: s.whereOf(&changes[0])}, &errs[len(marks)]
		marks = append(marks, mark)
		all.Go(func() { _, _, *failed = s.apply(ctx, changes, mark) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	marks = append(marks, s.settleFormer(ctx, id, former)...)
	if rec.actual != actual {
		return tidegate.ErrSettled
	}
	deleted, err := at.delete(ctx, s.recordKey(id))
	if err != nil {
		return err
	}
	if !deleted {
		return tidegate.ErrSettled
	}
	forgetMarks(ctx, marks)
	return nil
}

// markKey returns the key of the mark that the record id leaves beside the counters of a tag.
func (s *Store) markKey(id, tag string) string {
	secret, _, _ := strings.Cut(id, "{")
	return s.prefix + ":settled:" + secret + "{" + tag + "}"
}

// delete deletes a key, and reports whether it was there.
func (e *endpoint) delete(ctx context.Context, key string) (deleted bool, err error) {
	client, err := e.client.get(ctx)
	if err != nil {
		return false, e.failed(err)
	}
	n, err := client.Do(ctx, client.B().Del().Key(key).Build()).AsInt64()
	return n > 0, e.failed(err)
}

// forgetMarks makes marks expire soon. It need not succeed: they expire later anyway.
func forgetMarks(ctx context.Context, marks []recordAction) {
	if len(marks) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), returnTimeout)
	go func() {
		defer cancel()
		for _, mark := range marks {
			if client, err := mark.at.client.get(ctx); err == nil {
				client.Do(ctx, client.B().Expire().Key(mark.key).Seconds(int64(markLife/time.Second)).Build())
			}
		}
	}()
}
