package rules

import "tidegate.dev/tidegate/internal/lang/diag"

// Problem is an error or a warning about a file: where, the line itself, why, and what to write
// instead. Severity tells the two apart.
//
// Its fields are Pos (embedded), Severity, Check (which lint check found it; "" for what
// keeps a file from loading), Source (the line), Message and Hint.
type Problem = diag.Problem

// Problems is everything found in a file, in the order in which a reader meets it.
// As an error it shows each problem with its line and a caret.
type Problems = diag.List

// Pos is a place in a file: File, Line and Col, which count from 1, Col in characters.
type Pos = diag.Pos

// Severity says whether a problem keeps a file from being used.
type Severity = diag.Severity

const (
	Error   = diag.Error   // the file is not used
	Warning = diag.Warning // the file is used
)
