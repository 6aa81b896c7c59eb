package board

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"tidegate.dev/tidegate/internal/chain"
)

// Record is what a board keeps under an ID. [Board.Put] reads ID, Body and Expires; the board
// fills in the rest.
type Record struct {
	// ID is chosen by the caller: 1 to MaxID of a-z, 0-9 and -. A record replaces the one with
	// the same ID.
	ID string
	// Body is at most MaxBody bytes.
	Body []byte
	// Expires is when it ends by itself; zero means that only End ends it.
	Expires time.Time
	// Ended is set by End: the record is a tombstone, which only the board sees.
	Ended bool
	// Rev is about when it was ordered, in µs since the Unix epoch; the highest wins.
	Rev int64

	by      uint32    // which instance ordered it; decides between equal Revs
	keep    time.Time // until when the fleet remembers it
	version int64     // of the table at which it has this record; 0 if that is not known
}

// Bounds of records.
const (
	MaxID      = chain.MaxRowID
	MaxBody    = 6 << 10
	MaxRecords = 10_000 // in force
)

const (
	// forever is how long a record that does not expire is kept.
	forever = 10 * 365 * 24 * time.Hour
	// tombstoneLife is the longest that the fleet remembers that a record was ended. An instance
	// that was cut off for less does not bring the record back.
	tombstoneLife = 30 * 24 * time.Hour
	// grace allows for clocks that differ.
	grace = time.Hour
)

// Errors of Put and End.
var (
	// ErrFull is returned when MaxRecords records are in force.
	ErrFull = errors.New("there are as many as there may be")
	// ErrUnknown is returned for a record that is not in force.
	ErrUnknown = errors.New("it is not in force: it was never ordered, or has ended")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("the board is closed")
)

// check returns what is wrong with a record.
func (r *Record) check() error {
	switch {
	case !validID(r.ID):
		return fmt.Errorf("the id %.40q is not valid: use 1 to %d of a-z, 0-9 and -", r.ID, MaxID)
	case len(r.Body) > MaxBody:
		return fmt.Errorf("%s has %d bytes: at most %d are kept", r.ID, len(r.Body), MaxBody)
	}
	return nil
}

func validID(id string) bool {
	for i := range len(id) {
		if c := id[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return id != "" && len(id) <= MaxID
}

// over reports whether r has expired.
func (r *Record) over(now time.Time) bool { return !r.Expires.IsZero() && !now.Before(r.Expires) }

// newer reports whether r replaces other, which may be nil.
func (r *Record) newer(other *Record) bool {
	return other == nil || r.Rev > other.Rev || r.Rev == other.Rev && r.by > other.by
}

// same reports whether r and other, which may be nil, are the same order.
func (r *Record) same(other *Record) bool {
	return other != nil && r.Rev == other.Rev && r.by == other.by
}

// kept returns until when r is to be remembered if it is ordered at now.
func (r *Record) kept(now time.Time) time.Time {
	switch last := now.Add(tombstoneLife); {
	case r.Expires.IsZero() && r.Ended:
		return last
	case r.Expires.IsZero():
		return now.Add(forever)
	case r.Ended && r.Expires.After(last):
		return last
	case r.Expires.Before(now): // the clock that now is from is ahead
		return now.Add(grace)
	}
	return r.Expires.Add(grace)
}

// Marks of a row's text.
const (
	markLive  = "live"
	markEnded = "ended"
)

// row returns r as a row of the table. Its text is MARK EXPIRES BODY; the time is in ms since the
// Unix epoch, 0 if r does not expire. Rows with a mark of a later version are ignored.
func (r *Record) row() chain.Row {
	mark, expires := markLive, int64(0)
	if r.Ended {
		mark = markEnded
	}
	if !r.Expires.IsZero() {
		expires = r.Expires.UnixMilli()
	}
	text := mark + " " + strconv.FormatInt(expires, 10) + " " + string(r.Body)
	return chain.Row{ID: r.ID, Rev: r.Rev, By: r.by, Keep: r.keep, Text: text}
}

// recordOf reads a row, and reports whether it is valid: anybody who may write to the table may
// have written it.
func recordOf(row *chain.Row) (*Record, bool) {
	fields := strings.SplitN(row.Text, " ", 3)
	if len(fields) != 3 || fields[0] != markLive && fields[0] != markEnded {
		return nil, false
	}
	ms, err := strconv.ParseInt(fields[1], 10, 64)
	r := &Record{
		ID: row.ID, Rev: row.Rev, Ended: fields[0] == markEnded, Body: []byte(fields[2]),
		by: row.By, keep: row.Keep, version: row.Version,
	}
	if ms != 0 {
		r.Expires = time.UnixMilli(ms)
	}
	return r, err == nil && ms >= 0 && ms < 1<<53 && row.Rev > 0 && row.Rev < maxRev && r.check() == nil
}

// maxRev is more than any Rev.
const maxRev = 1 << 53
