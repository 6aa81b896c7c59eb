package diag

import (
	"fmt"
	"slices"
)

// MaxTold is how many problems are told: whoever has mended as many looks again.
const MaxTold = 100

// Tally collects problems up to MaxTold of each severity, and counts the rest. The
// zero value is empty.
type Tally struct {
	list List
	told [2]int // by severity
	more [2]int
}

// Full reports whether a problem of that severity would only be counted: what it
// takes long to say of it need not be found out.
func (t *Tally) Full(s Severity) bool { return t.told[s] >= MaxTold }

// Add takes problems.
func (t *Tally) Add(all ...Problem) {
	for _, p := range all {
		switch {
		case p.more > 0:
			t.more[p.Severity] += p.more
		case t.Full(p.Severity):
			t.more[p.Severity]++
		default:
			t.told[p.Severity]++
			t.list = append(t.list, p)
		}
	}
}

// List returns at most MaxTold problems by their places, errors before warnings if
// there is no room for all, and at the end how many more there are.
func (t *Tally) List() List {
	l := slices.Clone(t.list)
	l.Sort()
	more := t.more
	room := max(MaxTold-t.told[Error], 0)
	l = slices.DeleteFunc(l, func(p Problem) bool {
		if p.Severity != Warning {
			return false
		}
		if room--; room < 0 {
			more[Warning]++
		}
		return room < 0
	})
	for s, what := range map[Severity]string{Error: "error", Warning: "warning"} {
		if n := more[s]; n > 0 {
			if n > 1 {
				what += "s"
			}
			l = append(l, Problem{Pos: Pos{File: t.list[0].File}, Severity: s, Message: fmt.Sprintf("and %d more %s", n, what), more: n})
		}
	}
	l.Sort()
	return l
}

// Bounded returns at most MaxTold of l, and how many more there are.
func (l List) Bounded() List {
	if len(l) <= MaxTold {
		return l
	}
	var t Tally
	t.Add(l...)
	return t.List()
}

// Count returns how many errors and warnings there are, those included that are only
// counted.
func (l List) Count() (errors, warnings int) {
	for _, p := range l {
		n := max(p.more, 1)
		if p.Severity == Error {
			errors += n
		} else {
			warnings += n
		}
	}
	return errors, warnings
}
