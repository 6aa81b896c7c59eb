package deferq

import (
	"context"
	"time"
)

// Store keeps entries. All methods may be called by many goroutines at once.
type Store interface {
	// Busy reports whether the line has entries that have not ended.
	Busy(ctx context.Context, l Line) (bool, error)
	// Room returns ErrFull if there is no room for an entry of that size now.
	Room(ctx context.Context, l Line, size int64, b Bounds) error
	// Add appends an entry to its line. When it returns without an error, the entry survives a
	// crash of the process and of the machine. It returns how many entries of the line are before
	// it; ErrFull if there is no room.
	Add(ctx context.Context, e *Entry, b Bounds) (before int, err error)
	// Next waits until the first entry of a line may be tried, and returns it as Trying; no other
	// entry of its line is returned before Again or End. Lines take turns.
	Next(ctx context.Context) (*Entry, error)
	// Again puts an entry back at the front of its line, to be due at e.Next.
	Again(e *Entry)
	// End records that an entry is Done or Dead. The record is written soon; if the process dies
	// before that, the entry is tried again.
	End(e *Entry)
	// Get returns an entry, without the body of its request, and how many entries of its line are
	// before it; ErrNone if there is no such entry.
	Get(ctx context.Context, id string) (e *Entry, before int, err error)
	// List calls f with entries, without bodies, until it returns false.
	List(ctx context.Context, f func(*Entry) bool) error
	// Retry makes a waiting entry due now, and appends a dead one to its line. The error is ErrNone
	// if there is no such entry, ErrBusy if it is being sent, and ErrEnded if it is done or its
	// request was removed.
	Retry(ctx context.Context, id string, now time.Time) error
	// Drop makes a waiting entry dead, with that reason and without its request, and removes a dead
	// one. Its errors are those of Retry; one that waits and cannot be read is ErrUnreadable until its
	// turn comes.
	Drop(ctx context.Context, id, reason string) error
	// Stats returns the totals of all entries.
	Stats(ctx context.Context) (Stats, error)
	// Close closes the store; entries stay.
	Close() error
}

// Stats says how full a store is.
type Stats struct {
	Waiting    int64            // not ended, those that are being sent included
	Done, Dead int64            // ended and still kept
	Lines      int64            // with entries that wait
	Bytes      int64            // of all entries
	Max        int64            // bytes that there may be
	Oldest     time.Time        // when the oldest that waits was accepted; zero if none waits
	Rules      map[string]int64 // that wait, by rule
	// Unwritten is how many changes are not recorded yet, most of them ends. Err is why changes
	// cannot be recorded or requests cannot be kept; nil if they can.
	Unwritten int64
	Err       error
}
