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
	"time"

	"tidegate.dev/tidegate"
)

// Backend is a store with every ability that layers ask for. One that it does not have
// is answered with [tidegate.ErrUnsupported].
type Backend interface {
	tidegate.Store
	tidegate.Renewer
	tidegate.Reserver
	tidegate.Resetter

	// MaxBatch is how many asks TakeBatch decides in one round trip. With 1 there is
	// nothing to gain by collecting them.
	MaxBatch() int
	// Server is the number of the server that a counter lives on: servers have their
	// trouble one by one. A backend that is one server says 0. It may change at any
	// time, as the slots of a cluster move.
	Server(l *tidegate.Limit, key string) int
	// Servers are the names of all servers, by number; "" stands for a number that no
	// server has now. The slice is another one whenever counters have moved.
	Servers() []string
	// Heard is when a server last said anything, whatever it was about, and when it was
	// first asked something after that: when this left the process, which may be later
	// than TakeBatch was called. Zero means that this is not known.
	Heard(server int) (heard, asked time.Time)
	// TakeBatch decides about asks that have nothing to do with each other, each as
	// Take would, and writes the answers into them. An error means that none was
	// answered.
	TakeBatch(ctx context.Context, asks []Ask) error
	// Post charges an amount, unasked and once: whoever has no answer sends the same post
	// again.
	Post(ctx context.Context, p Post) error
}

// Ask is one vector of checks in a batch, and its answer.
type Ask struct {
	// Checks and Copies are what Take is asked for.
	Checks []tidegate.Check
	Copies int
	// Lease, when not 0: what is granted is used within this time from before it was asked
	// for, not at once. A bucket then keeps what refills meanwhile, from everybody, until it
	// has been full for that long: so no stretch of time ever has more than the limit.
	Lease time.Duration
	// Handle names the slots among Checks, those of copy i by Handle.Copy(i), so that
	// they can be given back whatever becomes of the answer. Zero, and a backend whose
	// receipts have none, mean that the backend names them.
	Handle tidegate.Handle

	// Granted is what Take would return.
	Granted tidegate.Decision
	// Rest is what the first copy that was not granted is refused with, from the same
	// look at the counters, if some were granted and not all. It has no Limit if that
	// is not known.
	Rest tidegate.Decision
	// Err says why this ask has no answer while others may have one.
	Err error
}

// Post is an amount that is charged once, however often it is sent. Posts of one boot to one
// counter are sent one after the other, with rising numbers: one with a lower number than
// the last that arrived is an old copy of a post that was answered or given up.
type Post struct {
	Boot   [2]uint64 // random: the process that owes
	Number uint64
	Check  tidegate.Check // with the amount as its cost
}

// PostLife is for how long a post may be sent again. A backend remembers its number for
// longer than that, or until what it charged counts no more.
const PostLife = time.Hour
