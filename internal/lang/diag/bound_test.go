package diag

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// However many problems there are, a hundred are told, errors first if not all find
// room, and none is lost from the count.
func TestBounded(t *testing.T) {
	for _, errors := range []int{0, 1, 99, 100, 101, 250} {
		for _, warnings := range []int{0, 1, 99, 100, 101, 5000} {
			var all List
			for i := range max(errors, warnings) {
				if i < warnings {
					all.Add(Problem{Pos: Pos{File: "a", Line: 2*i + 1, Col: 1}, Severity: Warning, Message: "w"})
				}
				if i < errors {
					all.Add(Problem{Pos: Pos{File: "a", Line: 2*i + 2, Col: 1}, Severity: Error, Message: "e"})
				}
			}
			l := all.Bounded().Bounded() // what is bounded stays as it is
			told, more := 0, 0
			for i, p := range l {
				if p.more > 0 {
					more++
				} else if told++; more > 0 {
					t.Errorf("%d errors, %d warnings: problem %d comes after the count", errors, warnings, i)
				}
			}
			gotErrors, gotWarnings := l.Count()
			if told != min(errors+warnings, MaxTold) || more > 2 || gotErrors != errors || gotWarnings != warnings || l.HasErrors() != (errors > 0) {
				t.Errorf("%d errors, %d warnings: %d are told, of %d and %d", errors, warnings, told, gotErrors, gotWarnings)
			}
			if text := l.Error(); strings.Count(text, ": e\n")+strings.Count(text, ": e") == 0 && errors > 0 {
				t.Errorf("%d errors, %d warnings: no error is told", errors, warnings)
			}
		}
	}
	if got := fmt.Sprint(len(List{}.Bounded())); got != "0" {
		t.Error(got)
	}
}

// Waived problems fail nobody, take nobody's room, and are counted.
func TestWaivedAreCountedApart(t *testing.T) {
	for _, n := range []int{0, 1, 100, 101, 5000} {
		var all List
		for i := range max(n, 100) {
			if i < n {
				all.Add(Problem{Pos: Pos{File: "a", Line: 2*i + 1, Col: 1}, Severity: Severity(i % 2), Message: "known", Waived: "we know"})
			}
			if i < 100 {
				all.Add(Problem{Pos: Pos{File: "a", Line: 2*i + 2, Col: 1}, Severity: Warning, Message: "w"})
			}
		}
		l := all.Bounded().Bounded()
		errors, warnings := l.Count()
		if errors != 0 || warnings != 100 || l.CountWaived() != n || l.HasErrors() || l.Err() != nil {
			t.Errorf("%d waived: %d errors, %d warnings, %d waived, %v", n, errors, warnings, l.CountWaived(), l.HasErrors())
		}
		if told := strings.Count(l.Error(), ": w\n") + strings.Count(l.Error(), ": w"); told < 100 || len(l) > 2*MaxTold+1 {
			t.Errorf("%d waived: %d problems, of %d warnings", n, len(l), told)
		}
	}
}

// A hundred problems of one line of a megabyte are not a hundred megabytes.
func TestLongLinesAreNotInJSON(t *testing.T) {
	line := strings.Repeat("x, ", 1<<18)
	var all List
	for i := range MaxTold {
		all.Add(Problem{Pos: Pos{File: "a", Line: 1, Col: 3*i + 1}, Source: line, Message: "wrong"})
	}
	text, err := json.Marshal(all)
	if err != nil || len(text) > 1<<16 || len(all.Error()) > 1<<16 || all[0].Source != line {
		t.Errorf("%d bytes of JSON, %d of text, %v", len(text), len(all.Error()), err)
	}
}
