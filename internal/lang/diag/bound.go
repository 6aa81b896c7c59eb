package diag

import (
	"fmt"
	"slices"
)

// MaxTold is how many problems are listed: the rest appears when these are fixed.
const MaxTold = 100

// Tally collects up to MaxTold problems of each severity, and of waived ones, and counts the rest.
// The zero value is empty.
type Tally struct {
	list List
	told [3]int // in list, by class
	more [3]int // only counted, by class
}

// class returns the severity of a problem, or waived, whatever its severity is.
func (p *Problem) class() int {
	if p.Waived != "" {
		return waived
	}
	return int(p.Severity)
}

const waived = 2

// Full reports whether a further problem of that severity would only be counted, so that its
// message need not be made.
func (t *Tally) Full(s Severity) bool { return t.told[s] >= MaxTold }

// Add adds problems. A problem that stands for several, at the end of a List, adds their number.
func (t *Tally) Add(all ...Problem) {
	for _, p := range all {
		switch c := p.class(); {
		case p.more > 0:
			t.more[c] += p.more
		case t.told[c] >= MaxTold:
			t.more[c]++
		default:
			t.told[c]++
			t.list = append(t.list, p)
		}
	}
}

// List returns problems by position: at most MaxTold errors and warnings together, with errors
// preferred, and at most MaxTold waived ones. If some are left out, a further problem says how
// many.
func (t *Tally) List() List {
	l := slices.Clone(t.list)
	l.Sort()
	more := t.more
	room := max(MaxTold-t.told[Error], 0)
	l = slices.DeleteFunc(l, func(p Problem) bool {
		if p.class() != int(Warning) {
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
	if n := more[waived]; n > 0 {
		l = append(l, Problem{Pos: Pos{File: t.list[0].File}, Severity: Warning, Message: fmt.Sprintf("and %d more", n), Waived: "as the file says", more: n})
	}
	l.Sort()
	return l
}

// Bounded returns at most MaxTold problems of l, and a further one that says how many more there
// are.
func (l List) Bounded() List {
	if len(l) <= MaxTold {
		return l
	}
	var t Tally
	t.Add(l...)
	return t.List()
}

// Count returns the number of errors and warnings, including those that are only counted.
func (l List) Count() (errors, warnings int) {
	n := l.count()
	return n[Error], n[Warning]
}

// CountWaived returns how many problems are waived.
func (l List) CountWaived() int { return l.count()[waived] }

func (l List) count() (n [3]int) {
	for _, p := range l {
		n[p.class()] += max(p.more, 1)
	}
	return n
}
