package lint_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/rules/lint"
)

var update = flag.Bool("update", false, "write what the checks find into testdata/*.txt")

// now is the day on which everything here is looked at.
func now() time.Time { return time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC) }

// longAgo is when files are read, so that what has ended is still there.
func longAgo() time.Time { return time.Time{} }

// listFile is every file that a list is read from.
func listFile(string) ([]byte, error) { return []byte("enterprise\n"), nil }

// run returns what one check finds in a file that loads.
func run(t *testing.T, check, name, src string) diag.List {
	t.Helper()
	f, problems := rulefile.Parse(name, []byte(src), rulefile.Options{Now: longAgo, ReadFile: listFile})
	if problems.HasErrors() {
		t.Fatalf("the file does not load:\n%v", problems)
	}
	var own diag.List
	o := lint.Options{Now: now}
	if check == "blind-door" {
		o.Doors = rules.Doors()
	}
	o.Quotas = check == "quota-door"
	if check == "untrusted-source" {
		o.Trust = new(lint.Trust)
	}
	for _, p := range lint.Run(f, o) {
		if p.Check == check {
			own.Add(p)
		}
	}
	return own
}

// finds runs a check on the lines below "version: 1" and compares what it finds
// with want: of each problem its severity and the text that it underlines.
func finds(t *testing.T, check, src string, want ...string) {
	t.Helper()
	findsIn(t, check, "version: 1\n"+strings.TrimLeft(strings.ReplaceAll(src, "\t", "  "), "\n"), want...)
}

// findsInDomain is finds for the lines below "domain: d".
func findsInDomain(t *testing.T, check, src string, want ...string) {
	t.Helper()
	findsIn(t, check, "domain: d\n"+strings.TrimLeft(src, "\n"), want...)
}

func findsIn(t *testing.T, check, src string, want ...string) {
	t.Helper()
	var got []string
	for _, p := range run(t, check, "rules.yaml", src) {
		got = append(got, p.Severity.String()+" "+underlined(p))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s finds %q, want %q, in\n%s", check, got, want, src)
	}
}

func underlined(p diag.Problem) string {
	line := []rune(p.Source)
	from := min(max(p.Col-1, 0), len(line))
	return string(line[from:min(from+max(p.Len, 1), len(line))])
}

// Each check has a file with its name in testdata, and what it finds there is
// told as in the file beside it.
func TestGolden(t *testing.T) {
	for _, c := range lint.Checks {
		t.Run(c.Name, func(t *testing.T) {
			name := filepath.Join("testdata", c.Name+".yaml")
			src, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			if err := run(t, c.Name, name, string(src)).Write(&got, false); err != nil {
				t.Fatal(err)
			}
			if got.Len() == 0 {
				t.Fatalf("%s finds nothing in %s", c.Name, name)
			}
			golden := filepath.Join("testdata", c.Name+".txt")
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
				t.Errorf("got\n%s\nwant\n%s\n(go test ./rules/lint -update writes it anew)", got.String(), want)
			}
		})
	}
}
