package yamltree

import "tidegate.dev/tidegate/internal/lang/diag"

// kind is what a token is.
type kind uint8

const (
	word kind = iota // a scalar: plain, quoted or a block
	dash
	colon
	comma
	openMap
	closeMap
	openList
	closeList
)

// token is a piece of the file: a scalar, or a sign between scalars.
type token struct {
	kind   kind
	quoted bool
	flow   bool   // inside of { } or [ ], or one of these
	text   string // of a word
	place
	endLine int // of a word: the line that it ends on
}

// place is a position that has no file yet. Lines and columns count from 1.
type place struct{ line, col, len int }

func (p place) pos(file string) diag.Pos {
	return diag.Pos{File: file, Line: p.line, Col: p.col, Len: max(p.len, 1)}
}
