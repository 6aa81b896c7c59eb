package diag

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
)

func TestSort(t *testing.T) {
	l := List{
		{Pos: Pos{File: "b", Line: 1, Col: 1}, Message: "6"},
		{Pos: Pos{File: "a", Line: 10, Col: 1}, Message: "5"},
		{Pos: Pos{File: "a", Line: 2, Col: 9}, Message: "2"},
		{Pos: Pos{File: "a", Line: 2, Col: 10}, Message: "3"},
		{Pos: Pos{File: "a", Line: 2, Col: 10}, Message: "4"},
		{Pos: Pos{File: "a"}, Message: "1"},
	}
	l.Sort()
	var got string
	for _, p := range l {
		got += p.Message
	}
	if got != "123456" {
		t.Errorf("got the order %s", got)
	}
}

func TestErr(t *testing.T) {
	var l List
	if l.Err() != nil || l.HasErrors() {
		t.Errorf("nothing is wrong: got %v", l.Err())
	}
	l.Add(Problem{Severity: Warning, Message: "careful"})
	if l.Err() != nil || l.HasErrors() {
		t.Errorf("a warning is no error: got %v", l.Err())
	}
	l.Add(Problem{Message: "wrong", Hint: "right"}, Problem{Message: "also"})
	var found List
	if err := fmt.Errorf("load: %w", l.Err()); !errors.As(err, &found) || len(found) != 3 || !l.HasErrors() {
		t.Errorf("got %v, want a List of three", err)
	}
	if got, want := l.Err().Error(), "warning: careful\nerror: wrong\n  right\nerror: also"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestJSON(t *testing.T) {
	f := func(l List, want string) {
		t.Helper()
		got, err := json.Marshal(l)
		if err != nil || string(got) != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
	f(nil, `[]`)
	f(List{}, `[]`)
	f(List{{Pos: Pos{File: "f", Line: 1, Col: 2, Len: 3}, Source: "a: b", Message: "m"}},
		`[{"file":"f","line":1,"col":2,"severity":"error","source":"a: b","message":"m"}]`)
	f(List{{Severity: Warning, Check: "c", Hint: "h"}},
		`[{"file":"","line":0,"col":0,"severity":"warning","check":"c","source":"","message":"","hint":"h"}]`)
	f(List{{Severity: Warning, Check: "c", Message: "m", Waived: "we know"}},
		`[{"file":"","line":0,"col":0,"severity":"warning","check":"c","source":"","message":"m","waived":"we know"}]`)
}

func TestLines(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		lines := SplitLines([]byte(src))
		if got := fmt.Sprintf("%q", lines); got != fmt.Sprintf("%q", want) {
			t.Errorf("%q: got %s, want %q", src, got, want)
		}
		for i, line := range want {
			if lines.At(i+1) != line {
				t.Errorf("%q: got line %d %q, want %q", src, i+1, lines.At(i+1), line)
			}
		}
		if lines.At(0) != "" || lines.At(len(want)+1) != "" {
			t.Errorf("%q: lines that are not there are not empty", src)
		}
	}
	f("", "")
	f("a", "a")
	f("\ufeffa\nb\r\n\rc\n", "a", "b", "", "c", "")

	p := SplitLines([]byte("a\nb")).Problem(Pos{Line: 2, Col: 1}, Warning, "m", "h")
	if want := (Problem{Pos: Pos{Line: 2, Col: 1}, Severity: Warning, Source: "b", Message: "m", Hint: "h"}); p != want {
		t.Errorf("got %+v, want %+v", p, want)
	}
}
