package diag

import "strings"

// Lines are the lines of a file as [Problem.Source] shows them: without the
// ends of lines, which may be \n, \r\n or \r, and without a byte order mark.
type Lines []string

// SplitLines splits the text of a file.
func SplitLines(src []byte) Lines {
	text := strings.TrimPrefix(string(src), "\ufeff")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	return strings.Split(text, "\n")
}

// At returns line n, counted from 1, and "" where there is none.
func (l Lines) At(n int) string {
	if n < 1 || n > len(l) {
		return ""
	}
	return l[n-1]
}

// Problem is shorthand for a Problem whose Source is the line of pos.
func (l Lines) Problem(pos Pos, s Severity, message, hint string) Problem {
	return Problem{Pos: pos, Severity: s, Source: l.At(pos.Line), Message: message, Hint: hint}
}
