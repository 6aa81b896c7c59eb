package board

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"tidegate.dev/tidegate/internal/chain"
)

// Record is what a board has under a name. ID, Body and Expires are what [Board.Put] reads;
// the board fills in the rest.
type Record struct {
	// ID is chosen by whoever orders it: 1 to MaxID of a-z, 0-9 and -. A record replaces
	// the one with the same ID.
	ID string
	// Body is at most MaxBody bytes.
	Body []byte
	// Expires is when it ends by itself; zero means not before it is ended.
	Expires time.Time
	// Ended: it was ended before that. Nobody but the board sees such a record.
	Ended bool
	// Rev is about the µs at which it was ordered; the last one counts.
	Rev int64

	by      uint32    // which instance ordered it; decides between equal Revs
	keep    time.Time // until when the fleet remembers it
	version int64     // of the table, where this record was seen; 0 if it was not
}

// Bounds of records.
const (
	MaxID      = chain.MaxRowID
	MaxBody    = 6 << 10
	MaxRecords = 10_000 // that are in force
)

const (
	// forever is how long a record without an end is kept.
	forever = 10 * 365 * 24 * time.Hour
	// tombstoneLife is how long it is remembered, at most, that a record was ended: for as
	// long an instance may be cut off, and not bring it back.
	tombstoneLife = 30 * 24 * time.Hour
	// grace is for clocks that differ.
	grace = time.Hour
)

// Errors of Put and End.
var (
	// ErrFull is returned for one record more than MaxRecords.
	ErrFull = errors.New("there are as many as there may be")
	// ErrUnknown is returned for a record that is not in force.
	ErrUnknown = errors.New("it is not in force: it was never ordered, or has ended")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("the board is closed")
)

// check reports what is wrong with a record that is ordered.
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

// newer reports whether r counts, and not other, which may be nil.
func (r *Record) newer(other *Record) bool {
	return other == nil || r.Rev > other.Rev || r.Rev == other.Rev && r.by > other.by
}

// same reports whether r and other are one order.
func (r *Record) same(other *Record) bool {
	return other != nil && r.Rev == other.Rev && r.by == other.by
}

// kept is until when r is to be remembered if it was ordered now.
func (r *Record) kept(now time.Time) time.Time {
	switch last := now.Add(tombstoneLife); {
	case r.Expires.IsZero() && r.Ended:
		return last
	case r.Expires.IsZero():
		return now.Add(forever)
	case r.Ended && r.Expires.After(last):
		return last
	case r.Expires.Before(now): // by a clock that is ahead of those that end it
		return now.Add(grace)
	}
	return r.Expires.Add(grace)
}

// Marks of a row's text.
const (
	markLive  = "live"
	markEnded = "ended"
)

// row is r as a table has it: MARK EXPIRES BODY, the time in ms, 0 if it has none. A later
// version may use another mark, and this one ignores it.
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

// recordOf reads a row. Anybody who may write to the table may have written it.
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
