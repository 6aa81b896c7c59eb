// Package domainfile parses configurations of envoyproxy/ratelimit: files with a root
// `domain` and nested `descriptors`. It returns a tree of the text, with the place of every
// element, and all problems. It knows the language, not how a descriptor is matched: package
// rules/envoy compiles a File.
//
// Start with [Read].
package domainfile

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
)

// File is all files of a configuration. Every value that a problem may be about has a Pos.
type File struct {
	Domains []*Domain
	Waive   []Waiver

	lines map[string]diag.Lines // by file: the source, for problems found later
}

// Problem returns a problem at pos with its source line, for lint and the compiler, which
// find what is wrong with f later.
func (f *File) Problem(pos diag.Pos, s diag.Severity, message, hint string) diag.Problem {
	return f.lines[pos.File].Problem(pos, s, message, hint)
}

// Word is a scalar as it was written.
type Word struct {
	Text string
	Pos  diag.Pos
}

// Domain is a domain with its descriptors, of several files if they are merged.
type Domain struct {
	Name        Word
	Atomic      bool
	Descriptors []*Descriptor
}

// Descriptor matches an entry of a request.
type Descriptor struct {
	Key   Word
	Value Word // Text is "" if every value matches
	// Limit is what is below rate_limit; nil if there is none. Empty is where `rate_limit:` is
	// written with nothing after it.
	Limit *RateLimit
	Empty diag.Pos

	Shadow, Quota    bool
	Detailed, Metric bool // detailed_metric, value_to_metric
	Shared           bool // share_threshold
	ShadowPos        diag.Pos
	QuotaPos         diag.Pos
	Metadata         map[string]any
	Descriptors      []*Descriptor
}

// RateLimit is what a descriptor is held to.
type RateLimit struct {
	Pos       diag.Pos // of the word rate_limit
	Name      Word
	Replaces  []Word
	Unlimited bool
	Unit      string // one of Units; "" if there is none, as beside `tidegate: { limits }`
	Requests  uint32
	// RequestsPos is where requests_per_unit is; where the unit is if it is not written, which
	// means 0. HasRequests tells the two apart.
	RequestsPos diag.Pos
	HasRequests bool
	Own         Own
}

// Own are the keys that only Tidegate has.
type Own struct {
	Pos           diag.Pos
	Algorithm     tidegate.Algorithm // Auto: not said
	Burst         int64              // 0 means not said
	Limits        []Limit
	Consistency   tidegate.Consistency
	CountRejected *bool // nil means not said
	Settle        bool

	limits bool // are written, though perhaps with mistakes
}

// Limit is a limit in the notation of rule files.
type Limit struct {
	Text string
	Pos  diag.Pos
	Spec tidegate.Spec
}

// Waiver says why what a check of lint finds in a file is accepted.
type Waiver struct {
	Check  Word
	Reason string
}

// Units are the words of `unit`, from short to long.
var Units = []string{"second", "minute", "hour", "day", "week", "month", "year"}
