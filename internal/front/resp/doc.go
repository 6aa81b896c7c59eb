// Package resp is the front end for Redis clients. It speaks RESP2, and RESP3 after HELLO 3,
// answers CL.THROTTLE as redis-cell does, and asks the rules by the TG commands. It is not a
// Redis: it keeps nothing that can be read back, and knows neither transactions nor scripts.
// docs/resp.md is the page for its users.
//
// There is one goroutine per connection. All complete commands of a read are answered by
// one write; the hot path allocates nothing.
//
// # Bounds
//
// A client holds at most the following, whatever it sends and however slowly:
//
//	a bulk string                    MaxBulk, 64 KiB; before AUTH 1 KiB
//	arguments of a command           MaxArgs, 1024; before AUTH 10
//	a command, or an inline line     MaxCommand, 256 KiB; before AUTH 4 KiB
//	input buffer                     4 KiB, 16 KiB while it pipelines, and as much as the command
//	                                 that it has begun is long
//	arguments                        40 KiB while a command of so many is read
//	output buffer                    64 KiB, and one reply
//	requests of one TG.MCHECK        MaxRequests, 128
//	large buffers of all connections Options.LargeBytes, 64 MiB together
//
// Output is written as soon as 64 KiB have gathered, so a client that sends without reading
// stops being read. A client that does not take its replies, or does not finish the command
// it has begun, is disconnected after Options.Stall; one that has to authenticate and does
// not, after Options.AuthWithin or ten wrong passwords. How many connections there are is up
// to the listener.
//
// Start with [New] and [Server.Serve].
package resp

// Bounds of one command; see the package comment.
const (
	MaxBulk     = 64 << 10
	MaxArgs     = 1024
	MaxCommand  = 256 << 10
	MaxRequests = 128
)

const (
	smallBuffer  = 4 << 10  // of a connection that sends commands one by one
	pipeBuffer   = 16 << 10 // of one that sends many at once
	flushAt      = 64 << 10 // output beyond which a batch is written in parts
	maxWrongAuth = 10
)

// bounds are what a client may send.
type bounds struct {
	bulk, args, command int
}

// known is for clients that have authenticated, or need not; unknown is for the others.
var (
	known   = bounds{bulk: MaxBulk, args: MaxArgs, command: MaxCommand}
	unknown = bounds{bulk: 1 << 10, args: 10, command: 4 << 10}
)
