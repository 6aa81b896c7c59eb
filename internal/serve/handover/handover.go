// Package handover lets a process take over from another, so that no connection
// is refused and no counter is refilled in between.
//
// Listening sockets are inherited: from systemd (LISTEN_FDS) or from the process
// that this one replaces. A socket that any process holds keeps taking connections,
// which wait in the kernel until one of its holders accepts them. A process that
// is asked to hand over starts its successor with the same sockets and arguments,
// and the two talk over a pair of pipes:
//
//	successor    prepared          it has read everything that can be wrong
//	predecessor  yours "SNAPSHOT"  it accepts no more, and wrote its counters
//	successor    serving           it has read them, and accepts
//
// Until the last message the predecessor can go on as if nothing had happened, and
// does so if the successor fails.
//
// Start with [Inherit], [Heir.Listen] and [Serve].
package handover

import "time"

// The environment of a process that inherits.
const (
	envFDs   = "LISTEN_FDS"     // how many sockets, from file 3 on
	envPID   = "LISTEN_PID"     // the process that they are for
	envNames = "LISTEN_FDNAMES" // how they are called, with colons between
	// envHeir is set by a predecessor. After the sockets come the pipe to read its words from and the
	// one to answer by.
	envHeir = "TIDEGATE_HANDOVER"
	// envHeld are the names of the sockets that came from systemd in the first place, with colons
	// between.
	envHeld = "TIDEGATE_HANDOVER_HELD"
	// envLeft is a folder with what the predecessor has left; see Options.Leave.
	envLeft = "TIDEGATE_HANDOVER_LEFT"
	heirYes = "yes"
	// heirHeld is what predecessors before envHeld say if all their sockets came from systemd.
	heirHeld = "held"

	firstFD = 3 // after the standard streams
)

// The words of the two processes, each a line.
const (
	wordPrepared = "prepared"
	wordYours    = "yours" // and the file with the counters, quoted
	wordServing  = "serving"
)

const (
	// stepTimeout is how long a successor may take for each of its words.
	stepTimeout = 30 * time.Second
	// parting is how long clients have to leave by themselves, being told with
	// their next answer; after it, connections that are idle are closed.
	parting = 200 * time.Millisecond
)
