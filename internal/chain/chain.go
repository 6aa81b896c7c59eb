// Package chain defines the layers between a Limiter or Gate and a store, each a
// [Backend] around another. It is not a store itself. Package node is the layer for
// stores that a fleet shares, package queue the one in which requests wait; package
// registry counts the instances.
//
// A layer embeds the Backend below it and overrides what it changes. All abilities are
// in one interface, so that no layer can lose one: [Adapt] finds out once what a store
// can do, and nothing checks again.
package chain

import (
	"context"
	"errors"
	"time"

	"tidegate.dev/tidegate"
)

// Backend is a store with every ability that layers ask for. The methods of an ability that it
// lacks return [tidegate.ErrUnsupported].
type Backend interface {
	tidegate.Store
	tidegate.Renewer
	tidegate.Reserver
	tidegate.Resetter

	// MaxBatch is how many asks TakeBatch decides in one round trip. With 1 there is
	// nothing to gain by collecting them.
	MaxBatch() int
	// Server returns the number of the server that a counter lives on, because servers fail
	// one by one. A backend that is a single server returns 0. The number may change at any
	// time, as the slots of a cluster move.
	Server(l *tidegate.Limit, key string) int
	// Servers returns the names of all servers, by number; "" stands for a number that no
	// server has now. The slice is a new one whenever counters have moved.
	Servers() []string
	// Heard returns when a server last sent anything, and when the first command after
	// that left this process, which may be later than the call of TakeBatch. Zero means
	// that the time is not known.
	Heard(server int) (heard, asked time.Time)
	// TakeBatch decides asks that are independent of each other, each as Take would, and
	// writes the answers into them. An error means that none was answered.
	TakeBatch(ctx context.Context, asks []Ask) error
	// Post charges an amount whether there is room for it or not, and only once: a caller
	// that gets no answer sends the same post again.
	Post(ctx context.Context, p Post) error
}

// ErrNoReply is wrapped by the error of a call that was sent and whose reply did not arrive, or not whole,
// because the connection broke: what it asked for may have been done.
var ErrNoReply = errors.New("no reply")

// Ask is one vector of checks in a batch, and the answer to it.
type Ask struct {
	// Checks and Copies are what Take is asked for.
	Checks []tidegate.Check
	Copies int
	// Lease, when not 0, means that what is granted is used not at once but within this time,
	// counted from before the call. A bucket then holds back from everybody what it refills in
	// that time, until it has been full for as long: so the limit holds in any stretch of time.
	Lease time.Duration
	// Handle names the slots among Checks, those of copy i by Handle.Copy(i), so that they can
	// be released even if the answer is lost. If it is zero the backend names the slots, and so
	// does a backend whose receipts have no Handle.
	Handle tidegate.Handle

	// Granted is what Take would return.
	Granted tidegate.Decision
	// Rest is the refusal of the first copy that was not granted, if some were granted and
	// not all, as of the same moment. Its Limit is nil if that is not known.
	Rest tidegate.Decision
	// Err says why this ask has no answer while others may have one.
	Err error
}

// Post is an amount that is charged once, however often it is sent. Posts of one boot to one
// counter are sent one after the other, with rising numbers: one with a lower number than
// the last that arrived is an old copy of a post that was answered or given up.
type Post struct {
	Boot   [2]uint64 // random: names the process that posts
	Number uint64
	Check  tidegate.Check // with the amount as its cost
}

// PostLife is how long a post may be sent again. A backend remembers its number for longer
// than that, or until what it charged no longer counts.
const PostLife = time.Hour
