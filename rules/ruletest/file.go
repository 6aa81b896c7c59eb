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
	Name  string // as passed to Read
	Rules string // the rule file or folder under test, relative to the working directory
	// Layers are the files and folders under test that are joined: Rules alone, or several, whose
	// names Rules joins with commas.
	Layers []string
	// Reloads are the rule files that steps put in force, as paths like Rules.
	Reloads []string
	cases   []scenario

	lines []string
}

// scenario is a case: requests that share counters, which start empty.
type scenario struct {
	Name  string
	Pos   rules.Pos
	Start time.Time // the clock at 0s
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
	As      map[string]string // identities by name; "" means absent
	Headers map[string]string
	Body    string           // JSON
	Form    []describe.Field // instead of Body
	Parts   bool             // Form is sent in parts
	Cost    int64            // what the caller says it costs; 0 means that it does not say
	Times   int
	Want    []wanted    // one per time
	Expect  expectation // of the last request

	// What the server does with an admitted request.
	Status  int           // its status; 0 means 200
	Lasts   time.Duration // how long it takes
	Settles bool          // whether it then knows the true cost
	Actual  int64
}

// wanted is the expected outcome of a request.
type wanted struct {
	Outcome outcome
	Pos     rules.Pos
}

// outcome is the outcome of a request.
type outcome string

const (
	admitted outcome = "ok"
	soft     outcome = "soft"    // admitted above the limit, and marked
	refused  outcome = "refused" // by a limit
	denied   outcome = "denied"  // by an access rule
)

// expectation is what else must hold for the last request of a step; nil means that anything may.
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
