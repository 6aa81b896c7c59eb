// Package handover lets a process take over from another, so that no connection
// is refused and no counter is refilled in between.
//
// Listening sockets are inherited: from systemd (LISTEN_FDS) or from the process that this one
// replaces. While any process holds a socket, the kernel queues its connections until a holder
// accepts them. A process that is asked to hand over starts its successor with the same sockets and
// arguments, and the two talk over a pair of pipes:
//
//	successor    prepared          it has read everything that can be wrong
//	predecessor  yours "SNAPSHOT"  it accepts no more, and wrote its counters
//	successor    serving           it has read them, and accepts
//
// Until the last message the predecessor can continue as if nothing had happened, and does so if
// the successor fails.
//
// Start with [Inherit], [Heir.Listen] and [Serve].
package handover

import "time"

// The environment of a process that inherits.
const (
	envFDs   = "LISTEN_FDS"     // number of sockets, from file descriptor 3 on
	envPID   = "LISTEN_PID"     // process ID that they are for
	envNames = "LISTEN_FDNAMES" // their names, separated by colons
	// envHeir is set by a predecessor. After the sockets come the pipe to read its messages from
	// and the pipe to answer on.
	envHeir = "TIDEGATE_HANDOVER"
	// envHeld has the names of the sockets that originally came from systemd, separated by colons.
	envHeld = "TIDEGATE_HANDOVER_HELD"
	// envLeft is a folder with files for the successor; see Options.Leave.
	envLeft = "TIDEGATE_HANDOVER_LEFT"
	heirYes = "yes"
	// heirHeld is the value by predecessors older than envHeld if all their sockets came from
	// systemd.
	heirHeld = "held"

	firstFD = 3 // after the standard streams
)

// The messages between the two processes, one per line.
const (
	messagePrepared = "prepared"
	messageYours    = "yours" // followed by the quoted name of the file with the counters
	messageServing  = "serving"
)

const (
	// stepTimeout is how long a successor may take for each of its messages.
	stepTimeout = 30 * time.Second
	// parting is how long clients, which are told with their next answer to disconnect, have for
	// that before the counters are written. What later requests use, the successor does not know.
	parting = 200 * time.Millisecond
)
