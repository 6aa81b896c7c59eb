// Package ruletest runs the tests that users write for their rules: requests at
// instants of a virtual clock, and what is to come of each. A test of a day's
// quota takes microseconds, and the same rules, gate and memory store decide as
// in production.
//
// Start with [Read] and [File.Run].
package ruletest

import (
	"time"

	"tidegate.dev/tidegate/rules"
)

// File is a test file.
type File struct {
	Name  string // as it was asked for
	Rules string // the rule file or folder under test, relative to the working directory
	Cases []Case

	lines []string
}

// Case is requests that share counters; each case starts with none.
type Case struct {
	Name  string
	Pos   rules.Pos
	Start time.Time // what the clock shows at 0s
	Steps []Step
}

// Step is one request, or the same several times at one instant.
type Step struct {
	Pos     rules.Pos
	At      time.Duration // since the start of the case
	Method  string
	Host    string
	Target  string            // path and query
	As      map[string]string // identities by name; "" is absent
	Headers map[string]string
	Body    string // JSON
	Cost    int64  // what the caller says it costs; 0: not said
	Times   int
	Want    []Want // one per time
	Expect  Expect // of the last time

	// What the server does with it, if it is let in.
	Status  int           // answers this; 0 means 200
	Lasts   time.Duration // takes so long
	Settles bool          // and knows the true cost then
	Actual  int64
}

// Want is what is to come of a request.
type Want struct {
	Outcome Outcome
	Pos     rules.Pos
}

// Outcome is what came of a request.
type Outcome string

const (
	OK      Outcome = "ok"      // admitted
	Soft    Outcome = "soft"    // admitted above the limit, and marked
	Refused Outcome = "refused" // by a limit
	Denied  Outcome = "denied"  // by an access rule
)

// Expect is what else is to hold for the last request of a step; nil expects
// nothing.
type Expect struct {
	Rule       *Text
	Remaining  *Number
	RetryAfter *Time
	ResetAfter *Time
	Wait       *Time
	Answer     *Number // the HTTP status of the answer
	Shadow     *Text   // a rule in shadow, or a candidate, that would have refused
}

// Text, Number and Time are expected values and where they are written.
type (
	Text struct {
		Value string
		Pos   rules.Pos
	}
	Number struct {
		Value int64
		Pos   rules.Pos
	}
	Time struct {
		Value time.Duration
		Pos   rules.Pos
	}
)
