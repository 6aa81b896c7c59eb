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

// How a record is settled over several slots of a cluster, where no script reaches all:
//
//  1. one script makes the changes of the record's own subject, and marks the record as
//     being settled, with the amount;
//  2. every other subject is changed by a script that leaves a mark of its own beside the
//     counters, and does nothing where it finds that mark;
//  3. the record is deleted, and the marks are left to end soon.
//
// Whoever finds a record that is being settled goes on from there with the amount it says.
// So each step can fail, or its answer be lost, and Settle be called again until it is
// through; every change is made once.

const (
	// settleLife is how long a record that is being settled is kept for whoever goes on
	// with it. Marks are kept for twice as long, so that they outlive the record.
	settleLife = 24 * time.Hour
	// settleTime bounds a call of Settle, and markLife is how long marks stay when the
	// record is gone: others that have read it may still be at work.
	settleTime = 10 * time.Second
	markLife   = time.Minute
)

// settling says what a script that changes counters does about a record, or a mark.
type settling struct {
	key    string // of the record, or of a mark
	act    settleAct
	actual int64         // or the number of a post
	life   time.Duration // of what is left behind; 0 means as long as act says
}

// settleAct is what is done, by the number it has in scripts.
type settleAct byte

const (
	settleNothing settleAct = iota
	settleWhole             // delete the record; without it change nothing
	settleBegin             // mark the record; without it, or if it is marked, change nothing
	settleOnce              // leave a mark; where there is one change nothing
	settleNumber            // leave the number as a mark; where there is one as high change nothing
)

// life is how long what is left behind is kept.
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

// recordText reads what is kept under key; "" is nothing.
func (s *Store) recordText(ctx context.Context, key string) (string, error) {
	var head packer
	head.number(float64(s.tag()))
	text, err := s.run(ctx, recordScript(), []string{key}, []string{string(head)})
	if err != nil {
		return "", err
	}
	text, ok := strings.CutPrefix(text, string(head))
	if !ok {
		return "", nonsense("a reply to another call")
	}
	if text == "" {
		return "", nil
	}
	if len(text) < 2*sha1.Size {
		return "", nonsense("a record of %d bytes", len(text))
	}
	hash, text := text[:2*sha1.Size], text[2*sha1.Size:]
	if sum := sha1.Sum([]byte(text)); hash != hex.EncodeToString(sum[:]) {
		return "", nonsense("a record that was changed on the way")
	}
	return text, nil
}

// parseRecord reads what several.lua wrote: when the record ends, the receipt, when a turn
// that was booked comes, who paid, and the charges. One that is being settled ends at 0,
// and has the amount behind everything.
func parseRecord(text string) (*record, error) {
	const numbers = 5 * 8
	if len(text) < numbers+2 {
		return nil, errRecord
	}
	n, ok := whole(text[:numbers])
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

// settlement is what makes the charges of a record the actual ones: beside the record
// itself, and in other slots.
func (s *Store) settlement(rec *record, id string, actual int64) (here, elsewhere []change, err error) {
	for _, c := range rec.charges {
		if c.Check >= 0 {
			if c.Check >= len(rec.paid) || rec.paid[c.Check] != '1' {
				continue // an advisory check that had no room
			}
			c.At, c.Due = rec.at, rec.due
		}
		b, err := c.Limit.bound()
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %w", errRecord, err)
		}
		if b.kind == buckets {
			c.At = c.Due + b.limit.Turn(min(actual, c.Cost))
		}
		one, ok := adjustment(b, c.Key, c.At, actual-c.Cost)
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

// settleApart goes on with a record that is being settled. It returns ErrSettled, when it
// is through, if that was not with the amount actual.
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
			_, _, *failed = s.apply(ctx, changes, settling{key: mark, act: settleOnce})
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
	client, err := s.link.get(ctx)
	if err != nil {
		return err
	}
	return client.Do(ctx, client.B().Del().Key(key).Build()).Error()
}

// forgetMarks has marks end soon. It need not succeed: they end by themselves.
func (s *Store) forgetMarks(ctx context.Context, marks []string) {
	client, err := s.link.get(ctx)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), backTime)
	go func() {
		defer cancel()
		for _, mark := range marks {
			client.Do(ctx, client.B().Expire().Key(mark).Seconds(int64(markLife/time.Second)).Build())
		}
	}()
}
