// Package diag describes problems in files that operators write: the place, the
// line itself with a caret, why, and what to write instead.
//
// Start with [List]. A reader of a file adds each problem to one and goes on, so
// that all problems are reported at once.
package diag

// Pos is a place in a file. Line and Col count from 1, Col in characters. Len is
// how many characters the caret underlines; 0 means 1.
type Pos struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Col  int    `json:"col"`
	Len  int    `json:"-"`
}

// Severity says whether a problem keeps a file from being used.
type Severity uint8

const (
	Error Severity = iota
	Warning
)

// Problem is one thing that is wrong.
type Problem struct {
	Pos
	Severity Severity `json:"severity"`
	Check    string   `json:"check,omitempty"` // the lint check that found it; "" for problems that keep a file from loading
	Source   string   `json:"source"`          // the line itself
	Message  string   `json:"message"`         // why, a phrase without a full stop
	Hint     string   `json:"hint,omitempty"`  // what to write instead

	// Waived is the reason that the file gives under `waive` for accepting what Check found; "" if
	// it does not. A waived problem is neither an error nor a warning.
	Waived string `json:"waived,omitempty"`

	more int // how many other problems it stands for; 0 for a real one
}

// List is everything that is wrong with a file, or with several. As an error it
// is what [List.Err] returns; nil and empty mean nothing is wrong.
type List []Problem
