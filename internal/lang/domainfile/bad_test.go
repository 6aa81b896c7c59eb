package domainfile

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Each file has one kind of mistake. Its first line says where the first problem is, so that a
// golden file written anew cannot drift away from it.
func TestBad(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) < 37 {
		t.Fatalf("found %d files, %v: is the test data gone?", len(files), err)
	}
	if texts, _ := filepath.Glob("testdata/bad/*.txt"); len(texts) != len(files) && !*update {
		t.Errorf("%d golden files for %d files: one is left over or missing", len(texts), len(files))
	}
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, problems := Read([]Text{{name, src}}, Options{})
			if !problems.HasErrors() {
				t.Fatal("nothing is found wrong")
			}
			problems.Sort()
			first, _, _ := strings.Cut(string(src), "\n")
			if want := fmt.Sprintf("# want: %d:%d", problems[0].Line, problems[0].Col); first != want {
				t.Errorf("the first line is %q, and the first problem says %q: %s", first, want, problems[0].Message)
			}
			for _, p := range problems {
				if p.File != name || p.Source == "" || p.Hint == "" {
					t.Errorf("%s:%d:%d: %s: the line is %q, the hint %q: want both", p.File, p.Line, p.Col, p.Message, p.Source, p.Hint)
				}
			}
			var got bytes.Buffer
			if err := problems.Write(&got, false); err != nil {
				t.Fatal(err)
			}
			golden := strings.TrimSuffix(file, ".yaml") + ".txt"
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
				t.Errorf("got\n%s\nwant\n%s", got.String(), want)
			}
		})
	}
}

// A limit at the wrong depth is refused with the right form, however it is indented.
func TestWrongDepthShowsTheRightForm(t *testing.T) {
	lines := []string{"rate_limit:", "unit: day", "requests_per_unit: 5"}
	for a := range 7 {
		for b := range 7 {
			src := "domain: messaging\ndescriptors:\n  - key: message_type\n    value: marketing\n" +
				strings.Repeat(" ", a) + lines[0] + "\n" + strings.Repeat(" ", b) + lines[1] + "\n" + strings.Repeat(" ", b) + lines[2] + "\n"
			file, problems := Read([]Text{{"config.yaml", []byte(src)}}, Options{})
			if a == 4 && b > 4 {
				if problems.HasErrors() || file.Domains[0].Descriptors[0].Limit.Requests != 5 {
					t.Errorf("%d, %d: %v\n%s", a, b, problems, src)
				}
				continue
			}
			if !problems.HasErrors() {
				t.Errorf("%d, %d: nothing is wrong with\n%s", a, b, src)
			} else if !strings.Contains(problems.Error(), "rate_limit: { unit: day, requests_per_unit: 5 }") {
				t.Errorf("%d, %d: the right form is not shown:\n%v", a, b, problems)
			}
		}
	}
}
