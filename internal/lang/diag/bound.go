package diag

import (
	"fmt"
	"slices"
)

// MaxTold is how many problems are listed: the rest shows when these are mended.
const MaxTold = 100

// Tally collects problems up to MaxTold of each severity, and of those that are waived,
// and counts the rest. The zero value is empty.
type Tally struct {
	list List
	told [3]int // in list, by class
	more [3]int // only counted, by class
}

// class returns the severity of a problem, or waived, whatever severity it then has.
func (p *Problem) class() int {
	if p.Waived != "" {
		return waived
	}
	return int(p.Severity)
}

const waived = 2

// Full reports whether a further problem of that severity would only be counted. Its message is
// then not shown, and need not be worked out.
func (t *Tally) Full(s Severity) bool { return t.told[s] >= MaxTold }

// Add adds problems. One that stands for several, at the end of a List, adds their number.
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

// List returns problems in the order of their places: at most MaxTold errors and warnings,
// warnings left out first, and at most MaxTold that are waived. Where
// some are left out, another problem says how many more there are.
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
