package chain

import (
	"context"
	"errors"
	"time"
)

// Table is where the instances of a fleet keep small rows that all of them should have, ask
// each other questions, and write a journal. Package board is what uses it.
type Table interface {
	// Look returns which rows have changed after a version of the table, the first
	// MaxChanged of them, and which questions are open. It is cheap, and writes nothing.
	Look(ctx context.Context, since int64) (TableNews, error)
	// Rows reads rows by their names, at most MaxRowsAtOnce. One that is not there has Rev 0.
	Rows(ctx context.Context, ids []string) ([]Row, error)
	// Post writes rows that are newer than what the table has under their names, at most
	// MaxRowsAtOnce. It returns what the table then has under each, and its epoch, which is
	// the given one if the table was empty. The error is ErrTableFull if there is no room.
	Post(ctx context.Context, epoch string, rows []Row) (now []Row, inForce string, err error)

	// Ask opens a question for some seconds, and Question reads one, which is "" if it is
	// not open any more.
	Ask(ctx context.Context, id, text string) error
	Question(ctx context.Context, id string) (string, error)
	// Answer answers a question that is open, and Answers returns the answers to one
	// from a number on, as many as one reply has room for.
	Answer(ctx context.Context, id, text string) error
	Answers(ctx context.Context, id string, from int) ([]string, error)

	// Append adds lines to the journal, at most MaxLinesAtOnce, which keeps the last
	// MaxJournal. A line begins with a name, and is added once though it is sent again.
	// Journal returns the last n lines, the oldest first.
	Append(ctx context.Context, lines []string) error
	Journal(ctx context.Context, n int) ([]string, error)
}

// Bounds of a Table.
const (
	MaxRows       = 20_000     // deleted ones included, as long as a mark of them is kept
	MaxRowID      = 32         // bytes
	MaxRowText    = 6<<10 + 64 // bytes
	MaxChanged    = 500
	MaxRowsAtOnce = 100
	MaxQuestion   = 16 << 10 // bytes
	MaxQuestions  = 64       // that are open
	MaxAnswer     = 65 << 10 // bytes
	MaxAnswers    = 1024
	MaxLine       = 8 << 10 // bytes of a line of the journal
	MaxJournal    = 10_000  // lines
	// MaxLinesAtOnce is how many one call appends.
	MaxLinesAtOnce = 100
)

// Row is what a Table has under a name.
type Row struct {
	ID   string
	Rev  int64     // µs: about when it was written; the newest counts
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

// TableNews is the answer to a look.
type TableNews struct {
	// Epoch changes whenever the table was lost; "" while it is empty.
	Epoch string
	// Version grows with every change.
	Version int64
	Now     time.Time // by the table's clock
	Changed []RowVersion
	// Open are the questions that can be answered, by ID.
	Open []string
}

// RowVersion is a row that was written at a version.
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
