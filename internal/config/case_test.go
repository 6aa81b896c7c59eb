package config

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the expectations in testdata")

// A case is a file of parts: "-- env --" has variables, "-- flags --" flags, a
// line each; "-- problems --" and "-- config --" what comes out. Every other
// part is a file, or with a slash at the end a folder.
type part struct{ name, text string }

func readParts(t testing.TB, name string) []part {
	t.Helper()
	src, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	parts := []part{{}} // the first is what is said about the case
	for line := range strings.Lines(string(src)) {
		if head, ok := strings.CutPrefix(line, "-- "); ok && strings.HasSuffix(head, " --\n") {
			parts = append(parts, part{name: strings.TrimSuffix(head, " --\n")})
			continue
		}
		parts[len(parts)-1].text += line
	}
	return parts
}

func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	bad := 0
	for _, file := range files {
		file, err := filepath.Abs(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			parts := readParts(t, file)
			t.Chdir(t.TempDir())
			var kept, want, got bytes.Buffer
			o := Options{Environ: []string{}, OpenFiles: 1024}
			var args []string
			for _, p := range parts {
				text := p.text
				if p.name != "" {
					text = "-- " + p.name + " --\n" + text
				}
				if p.name == "problems" || p.name == "config" {
					want.WriteString(text)
					continue
				}
				kept.WriteString(text)
				switch p.name {
				case "":
				case "env":
					o.Environ = strings.Split(strings.TrimSpace(p.text), "\n")
				case "flags":
					args = strings.Split(strings.TrimSpace(p.text), "\n")
				default:
					place(t, p)
				}
			}
			o.Flags = parseFlags(t, args...)
			c, problems := Load(o)
			if len(problems) > 0 {
				got.WriteString("-- problems --\n")
				problems.Write(&got, false)
			}
			if (c == nil) != problems.HasErrors() {
				t.Errorf("config is %v, with these problems:\n%v", c, problems)
			}
			if c != nil {
				got.WriteString("-- config --\n")
				c.Write(&got)
			} else {
				bad++
			}
			if *update {
				kept.Write(got.Bytes())
				if err := os.WriteFile(file, kept.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got.String() != want.String() {
				t.Errorf("got\n%s\nwant\n%s", got.String(), want.String())
			}
			if strings.Contains(got.String(), "s3cret") {
				t.Error("the secret is shown")
			}
		})
	}
	if bad < 20 {
		t.Errorf("%d bad configurations: were files lost?", bad)
	}
}

// place writes a file of a case into the working folder.
func place(t *testing.T, p part) {
	t.Helper()
	if strings.HasSuffix(p.name, "/") {
		if err := os.MkdirAll(p.name, 0o755); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := os.MkdirAll(filepath.Dir(p.name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.name, []byte(p.text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func parseFlags(t testing.TB, args ...string) *FlagValues {
	t.Helper()
	fs := flag.NewFlagSet("serve", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	v := Flags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return v
}
