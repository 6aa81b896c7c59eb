package rulefile

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files anew")

// today is when the test data is read.
func today() time.Time { return time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC) }

// inFolder reads files as if the folder were the current one, so that problems
// name files as an operator would.
func inFolder(folder string) Options {
	return Options{
		ReadFile: func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(folder, name)) },
		Glob: func(pattern string) ([]string, error) {
			found, err := filepath.Glob(filepath.Join(folder, pattern))
			for i := range found {
				found[i], _ = filepath.Rel(folder, found[i])
			}
			return found, err
		},
		Now: today,
	}
}

// Each file has one kind of mistake. Its first line says where the first problem
// is to be told, so that a golden file written anew cannot drift away from it.
func TestBad(t *testing.T) {
	const folder = "testdata/bad"
	files, err := filepath.Glob(folder + "/*.yaml")
	if err != nil || len(files) < 44 {
		t.Fatalf("found %d files, %v: is the test data gone?", len(files), err)
	}
	if texts, _ := filepath.Glob(folder + "/*.txt"); len(texts) != len(files) {
		t.Errorf("%d golden files for %d files: one is left over or missing", len(texts), len(files))
	}
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			_, problems := Read(name, inFolder(folder))
			if len(problems) == 0 {
				t.Fatal("nothing is found wrong")
			}
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			first, _, _ := strings.Cut(string(src), "\n")
			p := problems[0]
			want := fmt.Sprintf("# want: %d:%d", p.Line, p.Col)
			if p.File != name {
				want = fmt.Sprintf("# want: %s:%d:%d", p.File, p.Line, p.Col)
			}
			if first != want {
				t.Errorf("the first line is %q, and the first problem says %q: %s", first, want, p.Message)
			}
			for _, p := range problems {
				if p.Source == "" || p.Hint == "" {
					t.Errorf("%s:%d:%d: %s: the line is %q, the hint %q: want both", p.File, p.Line, p.Col, p.Message, p.Source, p.Hint)
				}
			}
			var got bytes.Buffer
			if err := problems.Write(&got, false); err != nil {
				t.Fatal(err)
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".txt", got.Bytes())
		})
	}
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: write it with go test -update", err)
	}
	if len(want) == 0 || !bytes.Equal(got, want) {
		t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
	}
}
