package diag

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// Add appends problems.
func (l *List) Add(p ...Problem) { *l = append(*l, p...) }

// Sort sorts the problems by file, line and column, and keeps the order of those at one position.
// Problems that say how many more there are come last, errors first.
func (l List) Sort() {
	slices.SortStableFunc(l, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(min(a.more, 1), min(b.more, 1)),
			cmp.Compare(min(a.more, 1)*int(a.Severity), min(b.more, 1)*int(b.Severity)),
			strings.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Col, b.Col),
		)
	})
}

// HasErrors reports whether anything in l keeps a file from being used.
func (l List) HasErrors() bool {
	return slices.ContainsFunc(l, func(p Problem) bool { return p.Severity == Error && p.Waived == "" })
}

// Err returns l as an error, nil when it holds no errors: warnings alone let a
// file be used.
func (l List) Err() error {
	if !l.HasErrors() {
		return nil
	}
	return l
}

// Error returns what [List.Write] writes, without color.
func (l List) Error() string { return strings.TrimSuffix(string(l.render(false)), "\n") }

// MarshalJSON writes an array, [] when nothing is wrong.
func (l List) MarshalJSON() ([]byte, error) {
	if l == nil {
		return []byte("[]"), nil
	}
	short := slices.Clone(l)
	for i := range short { // a line may be as long as the file, and be repeated in every problem
		if p := &short[i]; len(p.Source) > maxSource {
			p.Source = ""
		}
	}
	return json.Marshal([]Problem(short))
}

// maxSource is the longest line that is part of the JSON of a problem.
const maxSource = 4096
