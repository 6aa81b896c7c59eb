package chain

import (
	"context"
	"errors"
	"time"

	"tidegate.dev/tidegate"
)

// Shelf is where a fleet keeps the last few versions of one large text, such as its rules.
type Shelf interface {
	// Newest returns the newest version; Number 0 means that there is none.
	Newest(ctx context.Context) (Version, error)
	// Versions returns those that are kept, the newest first.
	Versions(ctx context.Context) ([]Version, error)
	// Read returns the text of a version; the error is ErrNotKept if it is gone.
	Read(ctx context.Context, v Version) ([]byte, error)
	// Put makes text the newest version if the newest so far is after; the zero value stands
	// for an empty shelf. Otherwise it returns ErrMoved and changes nothing. After any other
	// error it is not known whether the text was put; never only a part of it.
	Put(ctx context.Context, after Version, label string, text []byte) (Version, error)
	// Watch calls changed whenever somebody has put a version, until ctx ends or the
	// connection is lost. It does not report what was put between two calls of Watch.
	Watch(ctx context.Context, changed func()) error
}

// Version is one version of the text on a Shelf.
type Version struct {
	Number int64     // from 1 on; starts over if the shelf was lost
	ID     string    // no two versions have the same
	At     time.Time // by the clock of the shelf
	Size   int64     // of the text, in bytes
	Sum    string    // of the text: SHA-256 in hexadecimal
	Label  string    // whatever the writer says about it
}

// Bounds of a Shelf.
const (
	MaxVersions = 20       // kept
	MaxLabel    = 8 << 10  // bytes
	MaxText     = 64 << 20 // bytes
)

// Errors of a Shelf.
var (
	// ErrMoved is returned by Put when another version is the newest.
	ErrMoved = errors.New("another version is the newest")
	// ErrNotKept is returned by Read when the version is not kept any more.
	ErrNotKept = errors.New("the version is not kept any more")
)

// shelfFinders are the functions given to RegisterShelf.
var shelfFinders []func(s tidegate.Store, name string) (Shelf, bool)

// RegisterShelf adds a function that returns a Shelf behind a store, and false for stores of
// other packages, as RegisterShared does. It is for stores with layers in front.
func RegisterShelf(find func(s tidegate.Store, name string) (Shelf, bool)) {
	shelfFinders = append(shelfFinders, find)
}

// ShelfOf returns the Shelf of that name behind s, and false if there is none.
func ShelfOf(s tidegate.Store, name string) (Shelf, bool) {
	for _, find := range shelfFinders {
		if shelf, ok := find(s, name); ok && shelf != nil {
			return shelf, true
		}
	}
	return nil, false
}
