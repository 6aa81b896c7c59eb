package redis

import (
	"context"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// How a record is settled over several slots of a cluster, where no script reaches all of
// them:
//
//  1. one script makes the changes of the record's own subject, and marks the record as
//     being settled, with the amount;
//  2. every other subject is changed by a script that leaves a mark of its own beside the
//     counters, and does nothing where it finds that mark;
//  3. the record is deleted, and the marks are made to expire soon.
//
// A caller that finds a record that is being settled continues with the amount in it. So
// each step can fail, or its answer be lost, and Settle can be called again until all is
// done; every change is made once.

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
	actual int64         // or the number of a post
	life   time.Duration // of the mark or record; 0 means that of act
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

// life is how long the mark or the record is kept.
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

func (s *Store) readRecord(ctx context.Context, id string) (*record, error) {
	text, err := s.recordText(ctx, s.recordKey(id))
	if err != nil {
		return nil, err
	}
	if text == "" {
		return nil, tidegate.ErrSettled
	}
	return parseRecord(text)
}

// recordText reads the record under key; "" means that there is none.
func (s *Store) recordText(ctx context.Context, key string) (string, error) {
	var head packer
	head.number(float64(s.tag()))
	text, err := s.run(ctx, recordScript(), []string{key}, []string{string(head)})
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
// slot of the record, and in others.
func (s *Store) settlement(rec *record, id string, actual int64) (here, elsewhere []change, err error) {
	for _, c := range rec.charges {
		if c.Check >= 0 {
			if c.Check >= len(rec.paid) || rec.paid[c.Check] != '1' {
				continue // an advisory check that had no room
			}
			c.At, c.Due = rec.at, rec.due
		}
		lim, err := c.Limit.compile()
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %w", errRecord, err)
		}
		if lim.kind == buckets {
			c.At = c.Due + lim.limit.Turn(min(actual, c.Cost))
		}
		one, ok := adjustment(lim, c.Key, c.At, actual-c.Cost)
		switch {
		case !ok:
		case s.cluster && slotOf(tagOf(c.Key)) != slotOf(tagOf(id)):
			elsewhere = append(elsewhere, one)
		default:
			here = append(here, one)
		}
	}
	return here, elsewhere, nil
}

// settleApart continues with a record that is being settled. At the end it returns
// ErrSettled if the amount of the record is not actual.
func (s *Store) settleApart(ctx context.Context, id string, rec *record, actual int64) error {
	_, elsewhere, err := s.settlement(rec, id, rec.actual)
	if err != nil {
		return err
	}
	apart := bySlot(elsewhere)
	marks := make([]string, 0, len(apart))
	errs := make([]error, len(apart))
	var all sync.WaitGroup
	for tag, changes := range apart {
		mark, failed := s.markKey(id, tag), &errs[len(marks)]
		marks = append(marks, mark)
		all.Go(func() {
			_, _, *failed = s.apply(ctx, changes, recordAction{key: mark, act: settleOnce})
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	if err := s.delete(ctx, s.recordKey(id)); err != nil {
		return err
	}
	s.forgetMarks(ctx, marks)
	if rec.actual != actual {
		return tidegate.ErrSettled
	}
	return nil
}

// markKey is the key of the mark that the record id leaves beside the counters of a tag.
func (s *Store) markKey(id, tag string) string {
	secret, _, _ := strings.Cut(id, "{")
	return s.prefix + ":settled:" + secret + "{" + tag + "}"
}

func (s *Store) delete(ctx context.Context, key string) error {
	client, err := s.client.get(ctx)
	if err != nil {
		return err
	}
	return client.Do(ctx, client.B().Del().Key(key).Build()).Error()
}

// forgetMarks makes marks expire soon. It need not succeed: they expire later anyway.
func (s *Store) forgetMarks(ctx context.Context, marks []string) {
	client, err := s.client.get(ctx)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), returnTimeout)
	go func() {
		defer cancel()
		for _, mark := range marks {
			client.Do(ctx, client.B().Expire().Key(mark).Seconds(int64(markLife/time.Second)).Build())
		}
	}()
}
