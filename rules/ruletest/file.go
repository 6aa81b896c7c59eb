// Package ruletest runs the tests that users write for their rules: requests at
// instants of a virtual clock, and the result that each must have. A test of a
// day's quota takes microseconds, and the same rules, gate and memory store decide
// as in production.
//
// Start with [Read] and [File.Run].
package ruletest

import (
	"time"

	"tidegate.dev/tidegate/internal/lang/describe"
	"tidegate.dev/tidegate/rules"
)

// File is a test file.
type File struct {
	Name  string // as it was asked for
	Rules string // the rule file or folder under test, relative to the working directory
	// Layers are the files and folders under test that are joined: Rules alone, or several,
	// whose names Rules then has with commas between.
	Layers []string
	// Reloads are the rule files that its steps put in force, as Rules is given.
	Reloads []string
	cases   []scenario

	lines []string
}

// scenario is requests that share counters; each case starts with none.
type scenario struct {
	Name  string
	Pos   rules.Pos
	Start time.Time // what the clock shows at 0s
	Steps []step
}

// step is one request, or the same several times at one instant; or a reload.
type step struct {
	Pos     rules.Pos
	At      time.Duration // since the start of the case
	Reload  string        // puts these rules in force; "" for a request
	Method  string
	Host    string
	Target  string            // path and query
	As      map[string]string // identities by name; "" is absent
	Headers map[string]string
	Body    string           // JSON
	Form    []describe.Field // instead of Body
	Parts   bool             // Form is sent in parts
	Cost    int64            // what the caller says it costs; 0 means not said
	Times   int
	Want    []wanted    // one per time
	Expect  expectation // of the last time

	// What the server does with it, if it is let in.
	Status  int           // answers this; 0 means 200
	Lasts   time.Duration // takes so long
	Settles bool          // and knows the true cost then
	Actual  int64
}

// wanted is what is to come of a request.
type wanted struct {
	Outcome outcome
	Pos     rules.Pos
}

// outcome is what came of a request.
type outcome string

const (
	admitted outcome = "ok"
	soft     outcome = "soft"    // admitted above the limit, and marked
	refused  outcome = "refused" // by a limit
	denied   outcome = "denied"  // by an access rule
)

// expectation is what else is to hold for the last request of a step; nil expects
// nothing.
type expectation struct {
	Rule       *placedText
	Class      *placedText // of the request
	Remaining  *placedNumber
	RetryAfter *placedTime
	ResetAfter *placedTime
	Wait       *placedTime
	Answer     *placedNumber // the HTTP status of the answer
	Shadow     *placedText   // a rule in shadow, or a candidate, that would have refused
}

// placedText, placedNumber and placedTime are expected values and where they are written.
type (
	placedText struct {
		Value string
		Pos   rules.Pos
	}
	placedNumber struct {
		Value int64
		Pos   rules.Pos
	}
	placedTime struct {
		Value time.Duration
		Pos   rules.Pos
	}
)
