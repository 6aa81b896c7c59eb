package chain

import (
	"context"
	"errors"
	"time"
)

// Table is where the instances of a fleet keep small rows that all of them should have, ask
// each other questions, and write a journal. Package board is what uses it.
type Table interface {
	// Look returns the first MaxChanged rows that have changed after a version of the table,
	// and which questions are open. It is cheap, and writes nothing.
	Look(ctx context.Context, since int64) (TableNews, error)
	// Rows reads rows by their IDs, at most MaxRowsAtOnce. A row that the table lacks has Rev 0.
	Rows(ctx context.Context, ids []string) ([]Row, error)
	// Post writes those of rows, at most MaxRowsAtOnce, that are newer than what the table has
	// under their IDs. It returns what the table then has under each, and its epoch, which is
	// the given one if the table was empty. It returns ErrTableFull if there is no room.
	Post(ctx context.Context, epoch string, rows []Row) (now []Row, inForce string, err error)

	// Ask opens a question for some seconds. Question reads one; it returns "" if the question
	// is no longer open.
	Ask(ctx context.Context, id, text string) error
	Question(ctx context.Context, id string) (string, error)
	// Answer adds an answer to an open question. Answers skips the
	// first from answers and returns the others, as many as one reply has room for.
	Answer(ctx context.Context, id, text string) error
	Answers(ctx context.Context, id string, from int) ([]string, error)

	// Append adds lines, at most MaxLinesAtOnce, to the journal, which keeps the last
	// MaxJournal lines. Each line begins with a name, by which it is added only once however
	// often it is sent. Journal returns the last n lines, the oldest first.
	Append(ctx context.Context, lines []string) error
	Journal(ctx context.Context, n int) ([]string, error)
}

// Bounds of a Table.
const (
	MaxRows       = 20_000     // tombstones of deleted rows included
	MaxRowID      = 32         // bytes
	MaxRowText    = 6<<10 + 64 // bytes
	MaxChanged    = 500
	MaxRowsAtOnce = 100
	MaxQuestion   = 16 << 10 // bytes
	MaxQuestions  = 64       // open at the same time
	MaxAnswer     = 65 << 10 // bytes
	MaxAnswers    = 1024
	MaxLine       = 8 << 10 // bytes of a line of the journal
	MaxJournal    = 10_000  // lines
	// MaxLinesAtOnce is how many lines one call of Append takes.
	MaxLinesAtOnce = 100
)

// Row is what a Table has under an ID.
type Row struct {
	ID   string
	Rev  int64     // about when it was written, in µs; the highest wins
	By   uint32    // who wrote it; decides between rows of one Rev
	Keep time.Time // the table may forget it after this
	Text string
	// Version of the table at which it was written; set only in rows that Post returns.
	Version int64
}

// Newer reports whether r replaces other.
func (r *Row) Newer(other *Row) bool {
	return r.Rev > other.Rev || r.Rev == other.Rev && r.By > other.By
}

// TableNews is what Look returns.
type TableNews struct {
	// Epoch names the table; a table that was lost comes back with another one. "" while it is empty.
	Epoch string
	// Version grows with every change.
	Version int64
	Now     time.Time // by the table's clock
	Changed []RowVersion
	// Open has the IDs of the questions that can be answered.
	Open []string
}

// RowVersion names a row, and the version of the table at which it was written.
type RowVersion struct {
	ID      string
	Version int64
}

// Errors of a Table.
var (
	// ErrTableFull is returned by Post when the table has MaxRows rows.
	ErrTableFull = errors.New("the table is full")
	// ErrBusy is returned by Ask when MaxQuestions questions are open.
	ErrBusy = errors.New("too many questions are open")
)
