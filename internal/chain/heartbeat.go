package chain

import "time"

// Heartbeat is what an instance says to the others every few seconds.
type Heartbeat struct {
	ID  string
	TTL time.Duration // how long it counts as live from now on
	// About is what the instance tells about itself, at most MaxAbout bytes; "" if
	// nothing.
	About string
}

// MaxAbout is the longest Heartbeat.About in bytes.
const MaxAbout = 512

// Roster is the answer of a backend to a Heartbeat.
type Roster struct {
	Live int // instances that are live, this one included
	Rank int // how many of them have a lower ID than this one
	// Listed is true if this instance was listed before the heartbeat. So the list is not a new
	// one, and an instance that it lacks is gone.
	Listed bool
	// Clock compares the clock of this process with that of the backend; of several
	// servers, with the one it differs from most.
	Clock Clock
}

// Clock is how far the wall clock of a process is ahead of that of a server.
type Clock struct {
	Server string        // its name, where there are several
	Offset time.Duration // less than 0: behind
	// Within is how far Offset may be wrong: half the round trip in which the clocks were
	// compared. 0 means that they were not compared.
	Within time.Duration
}

// Known reports whether the clocks were compared.
func (c Clock) Known() bool { return c.Within > 0 }

// Beyond returns by how much the clocks differ at least.
func (c Clock) Beyond() time.Duration { return max(c.Offset.Abs()-c.Within, 0) }

// Entry is an instance that is live.
type Entry struct {
	ID      string
	Age     time.Duration // since the heartbeat, if About is known
	Expires time.Duration // until it is no longer live
	About   string        // "" if it told nothing, as older versions do
}
