package diag

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

// shown are problems of every form.
var shown = List{
	{
		Pos: Pos{File: "rules.yaml", Line: 12, Col: 5, Len: 5}, Source: "    limit: 100/minute",
		Message: "unknown field `limit`", Hint: "did you mean `limits`?",
	},
	{
		Pos: Pos{File: "rules.yaml", Line: 3, Col: 12, Len: 4}, Severity: Warning, Check: "never-bites",
		Source:  "  - {match: /api}",
		Message: "no limit", Hint: "first line\nsecond line",
	},
	{Pos: Pos{File: "rules.yaml", Line: 1, Col: 1}, Source: "x", Message: "a caret without a length"},
	{Pos: Pos{File: "rules.yaml", Line: 4, Col: 8, Len: 1}, Source: "  per: ", Message: "behind the end of the line"},
	{Pos: Pos{File: "rules.yaml", Line: 4, Col: 40, Len: 9}, Source: "  per:", Message: "far behind it"},
	{Pos: Pos{File: "rules.yaml", Line: 5, Col: 3, Len: 99}, Source: "  per: ip", Message: "longer than the line"},
	{Pos: Pos{File: "rules.yaml", Line: 6, Col: 3, Len: 2}, Source: "    per: ip", Message: "in the indentation"},
	{Pos: Pos{File: "rules.yaml", Line: 7, Col: 3, Len: 3}, Source: "\ta\tb\tc", Message: "tabs"},
	{Pos: Pos{File: "rules.yaml", Line: 8, Col: 8, Len: 2}, Source: "안녕: \U0001f600 세계 x", Message: "wide characters"},
	{Pos: Pos{File: "rules.yaml", Line: 8, Col: 5, Len: 3}, Source: "e\u0301: abc", Message: "a combining character"},
	{
		Pos: Pos{File: "bad\x1b[2J.yaml", Line: 9, Col: 4, Len: 3}, Source: "a: \x1b[31mred\u202e",
		Message: "a name `\x1b]0;x\a`", Hint: "not \x1b[1m\u2028 either",
	},
	{
		Pos: Pos{File: "rules.yaml", Line: 10, Col: 301, Len: 6}, Source: strings.Repeat("long ", 60) + "wrong!" + strings.Repeat(" more", 60),
		Message: "in the middle of a long line",
	},
	{Pos: Pos{File: "rules.yaml", Line: 10, Col: 7, Len: 200}, Source: "      " + strings.Repeat("0123456789", 30), Message: "much of a long line"},
	{Pos: Pos{File: "rules.yaml", Line: 10, Col: 41, Len: 3}, Source: strings.Repeat("긴", 40) + "줄이다" + strings.Repeat("긴", 40), Message: "a long line of wide characters"},
	{Pos: Pos{File: "rules.yaml", Line: 11, Col: 1}, Message: "without its line"},
	{Pos: Pos{File: "rules.yaml"}, Message: "of the whole file", Hint: "save it as UTF-8"},
	{Message: "of no file"},
	{
		Pos: Pos{File: "rules.yaml", Line: 12, Col: 5, Len: 5}, Severity: Error, Check: "never-bites", Source: "    limit: 100/minute",
		Message: "a waived one", Hint: "remove it", Waived: "we know\x1b[2J",
	},
}

func TestWrite(t *testing.T) {
	f := func(golden string, color bool) {
		t.Helper()
		var got bytes.Buffer
		if err := shown.Write(&got, color); err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if got.String() != string(want) {
			t.Errorf("%s: got\n%s\nwant (-update writes it)\n%s", golden, got.String(), want)
		}
		for _, r := range []string{"\x1b[2J", "\x1b]", "\a", "\u202e", "\u2028"} {
			if strings.Contains(got.String(), r) {
				t.Errorf("%s: what a file had for the terminal, %q, is written to it", golden, r)
			}
		}
	}
	f("testdata/plain.txt", false)
	f("testdata/color.txt", true)
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestWriteFails(t *testing.T) {
	if err := shown.Write(full{}, false); err != os.ErrClosed {
		t.Errorf("got %v, want that of the writer", err)
	}
}
