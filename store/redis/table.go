package redis

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"tidegate.dev/tidegate/internal/chain"
)

// The table that a fleet shares is in one slot of a cluster, that of the key PREFIX:board, or
// on one shard; see tables.go. No counter has a key like these, since theirs contain :{.
//
//	PREFIX:board                              names of rows by version, and the epoch
//	PREFIX:board{PREFIX:board}:keep           names of rows by the time until which they are kept
//	PREFIX:board{PREFIX:board}:row:NAME       a row
//	PREFIX:board{PREFIX:board}:asked          names of questions by the time at which they were asked
//	PREFIX:board{PREFIX:board}:question:NAME  a question, and its answers with :answers behind
//	PREFIX:board{PREFIX:board}:journal        the last lines of the journal, and their names with :names behind
//
// The commands are those that counters and heartbeats need: whoever may run those has a table.

// fleetTable is the chain.Table of a Store, at an endpoint.
type fleetTable struct {
	s  *Store
	at *endpoint
}

var _ chain.Table = fleetTable{}

// Table is for package fleet.
func (s fleetStore) Table() chain.Table {
	if s.sharded() {
		return newShardTables(s.Store)
	}
	return fleetTable{s.Store, s.endpoints[0]}
}

func (t fleetTable) key(parts ...string) string {
	board := t.s.prefix + ":board"
	if len(parts) == 0 {
		return board
	}
	return board + "{" + board + "}:" + strings.Join(parts, ":")
}

var (
	lookScript   = sync.OnceValue(func() *script { return newScript("look") })
	postScript   = sync.OnceValue(func() *script { return newScript("post") })
	askScript    = sync.OnceValue(func() *script { return newScript("ask") })
	answerScript = sync.OnceValue(func() *script { return newScript("answer") })
	sliceScript  = sync.OnceValue(func() *script { return newScript("slice") })
	appendScript = sync.OnceValue(func() *script { return newScript("append") })
)

// questionOpen is how long a question is open.
var questionOpen = 5 * time.Second

// run is runText with a deadline, and errors that say what was tried. They do not make
// decisions careful: it is not counters that cannot be used.
func (t fleetTable) run(ctx context.Context, what string, sc *script, keys []string, args ...string) (*replyText, error) {
	ctx, end := t.s.withDeadline(ctx)
	defer end()
	text, err := t.s.runText(ctx, t.at, sc, keys, args...)
	if err != nil {
		t.s.refreshTopology()
		if why := t.at.trouble(); why != nil && errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("%w: %w", err, why)
		}
		return nil, failure(what, err)
	}
	return text, nil
}

// Look implements chain.Table.
func (t fleetTable) Look(ctx context.Context, since int64) (chain.TableNews, error) {
	text, err := t.run(ctx, "look at the board", lookScript(), []string{t.key(), t.key("asked")},
		decimal(since), decimal(chain.MaxChanged), decimal(chain.MaxRowID), decimal(questionOpen.Microseconds()), decimal(chain.MaxQuestions))
	if err != nil {
		return chain.TableNews{}, err
	}
	us, version, epoch, changed := text.number(), text.number(), text.number(), text.number()
	news := chain.TableNews{Now: time.UnixMicro(us), Version: version, Epoch: text.take(epoch)}
	for range min(changed, chain.MaxChanged) {
		version, size := text.number(), text.number()
		news.Changed = append(news.Changed, chain.RowVersion{ID: text.take(size), Version: version})
	}
	for len(text.rest) > 0 && !text.broken {
		news.Open = append(news.Open, text.take(text.number()))
	}
	if text.broken || changed > chain.MaxChanged || len(news.Open) > chain.MaxQuestions {
		return chain.TableNews{}, failure("look at the board", invalidReply("news that break off"))
	}
	return news, nil
}

// Rows implements chain.Table.
func (t fleetTable) Rows(ctx context.Context, ids []string) ([]chain.Row, error) {
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = t.key("row", id)
	}
	rows := make([]chain.Row, len(ids))
	if len(ids) == 0 {
		return rows, nil
	}
	text, err := t.run(ctx, "read the board", aboutScript(), keys, decimal(maxStoredRow))
	if err != nil {
		return nil, err
	}
	for i := range rows {
		if rows[i], err = parseRow(text.take(text.number())); err != nil {
			rows[i] = chain.Row{} // not written by Tidegate: treat it as missing, so that it is overwritten
		}
		rows[i].ID = ids[i]
	}
	if text.broken || text.rest != "" {
		return nil, failure("read the board", invalidReply("%d rows that do not fit", len(ids)))
	}
	return rows, nil
}

// maxStoredRow is how long a row is with its numbers.
const maxStoredRow = chain.MaxRowText + 64

// parseRow reads a row as post.lua writes it; "" is none.
func parseRow(text string) (r chain.Row, err error) {
	if text == "" {
		return r, nil
	}
	fields := strings.SplitN(text, " ", 4)
	if len(fields) != 4 {
		return r, errRow
	}
	rev, err1 := strconv.ParseInt(fields[0], 10, 64)
	by, err2 := strconv.ParseUint(fields[1], 10, 32)
	keep, err3 := strconv.ParseInt(fields[2], 10, 64)
	if errors.Join(err1, err2, err3) != nil || rev < 1 || rev >= 1<<53 || keep < 0 || keep >= 1<<53 || len(fields[3]) > chain.MaxRowText {
		return r, errRow
	}
	return chain.Row{Rev: rev, By: uint32(by), Keep: time.UnixMilli(keep), Text: fields[3]}, nil
}

var errRow = errors.New("the row cannot be read")

// What post.lua answers about a row.
const (
	rowKept = iota // what is there is as new
	rowWritten
	rowNoRoom
	rowOver
)

// Post implements chain.Table.
func (t fleetTable) Post(ctx context.Context, epoch string, rows []chain.Row) (now []chain.Row, inForce string, err error) {
	const what = "write to the board"
	keys := []string{t.key(), t.key("keep")}
	args := []string{epoch, decimal(chain.MaxRows)}
	for i := range rows {
		r := &rows[i]
		if r.ID == "" || len(r.ID) > chain.MaxRowID || len(r.Text) > chain.MaxRowText || r.Rev < 1 || r.Rev >= 1<<53 || len(rows) > chain.MaxRowsAtOnce {
			return nil, "", fmt.Errorf("redis: %s: %w: %q with %d bytes", what, errRow, r.ID, len(r.Text))
		}
		keys = append(keys, t.key("row", r.ID))
		args = append(args, r.ID, decimal(r.Rev), decimal(int64(r.By)), decimal(r.Keep.UnixMilli()), r.Text)
	}
	text, err := t.run(ctx, what, postScript(), keys, args...)
	if err != nil {
		return nil, "", err
	}
	inForce = text.take(text.number())
	now = make([]chain.Row, len(rows))
	full := false
	for i := range rows {
		status, version, old := text.number(), text.number(), ""
		old = text.take(text.number())
		switch status {
		case rowWritten:
			now[i] = rows[i]
		case rowKept:
			if now[i], err = parseRow(old); err != nil {
				return nil, "", failure(what, err)
			}
		case rowNoRoom:
			full = true
		}
		now[i].ID, now[i].Version = rows[i].ID, version
	}
	switch {
	case text.broken || text.rest != "":
		return nil, "", failure(what, invalidReply("an answer about %d rows that does not fit", len(rows)))
	case full:
		return now, inForce, failure(what, chain.ErrTableFull)
	}
	return now, inForce, nil
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// Ask implements chain.Table.
func (t fleetTable) Ask(ctx context.Context, id, text string) error {
	if len(text) > chain.MaxQuestion {
		return fmt.Errorf("redis: ask the instances: a question of %d bytes", len(text))
	}
	return t.yes(ctx, "ask the instances", chain.ErrBusy, askScript(), []string{t.key("asked"), t.key("question", id)},
		id, text, decimal(int64(math.Ceil(questionOpen.Seconds()))), decimal(chain.MaxQuestions))
}

// yes runs a script that answers 1, or 0 if it has done nothing; yes then returns not.
func (t fleetTable) yes(ctx context.Context, what string, not error, sc *script, keys []string, args ...string) error {
	text, err := t.run(ctx, what, sc, keys, args...)
	switch {
	case err != nil:
		return err
	case text.number() == 0:
		return failure(what, not)
	}
	return nil
}

// Question implements chain.Table.
func (t fleetTable) Question(ctx context.Context, id string) (string, error) {
	text, err := t.run(ctx, "read a question", aboutScript(), []string{t.key("question", id)}, decimal(chain.MaxQuestion))
	if err != nil {
		return "", err
	}
	return text.take(text.number()), nil
}

// Answer implements chain.Table. To a question that is not open any more it does nothing.
func (t fleetTable) Answer(ctx context.Context, id, text string) error {
	if len(text) > chain.MaxAnswer {
		return fmt.Errorf("redis: answer: %d bytes", len(text))
	}
	question := t.key("question", id)
	_, err := t.run(ctx, "answer", answerScript(), []string{question, question + ":answers"},
		text, decimal(int64(2*questionOpen.Seconds())), decimal(chain.MaxAnswers))
	return err
}

// answersAtOnce is how many one reply has room for.
const answersAtOnce = 8

// Answers implements chain.Table.
func (t fleetTable) Answers(ctx context.Context, id string, from int) ([]string, error) {
	all, _, err := t.slice(ctx, "read answers", t.key("question", id)+":answers", from, answersAtOnce, chain.MaxAnswer)
	return all, err
}

// slice reads a part of a list, and returns its length.
func (t fleetTable) slice(ctx context.Context, what, key string, from, count, size int) (all []string, length int64, err error) {
	text, err := t.run(ctx, what, sliceScript(), []string{key}, strconv.Itoa(from), strconv.Itoa(count), strconv.Itoa(size))
	if err != nil {
		return nil, 0, err
	}
	length = text.number()
	for len(text.rest) > 0 && !text.broken {
		all = append(all, text.take(text.number()))
	}
	if text.broken || len(all) > count {
		return nil, 0, failure(what, invalidReply("a part of a list that breaks off"))
	}
	return all, length, nil
}

// lineNames is how long the names of lines are kept, by which a line that is sent again is
// recognized.
const lineNames = time.Hour

// Append implements chain.Table.
func (t fleetTable) Append(ctx context.Context, lines []string) error {
	if len(lines) > chain.MaxLinesAtOnce {
		return fmt.Errorf("redis: write to the journal: %d lines at once", len(lines))
	}
	_, err := t.run(ctx, "write to the journal", appendScript(), []string{t.key("journal"), t.key("journal", "names")},
		append([]string{decimal(chain.MaxJournal), decimal(int64(lineNames.Seconds()))}, lines...)...)
	return err
}

// Journal implements chain.Table.
func (t fleetTable) Journal(ctx context.Context, n int) ([]string, error) {
	const what = "read the journal"
	key := t.key("journal")
	_, length, err := t.slice(ctx, what, key, 0, 0, 0)
	if err != nil {
		return nil, err
	}
	var all []string
	for from := max(0, int(length)-n); from < int(length); {
		part, _, err := t.slice(ctx, what, key, from, chain.MaxLinesAtOnce, chain.MaxLine)
		if err != nil || len(part) == 0 {
			return all, err
		}
		all, from = append(all, part...), from+len(part)
	}
	return all[max(0, len(all)-n):], nil
}
