package cli

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

var update = flag.Bool("update", false, "rewrite golden files and the examples shown in docs/rules.md")

// shown is a fenced block that says which file, or the output of which command,
// it shows.
var shown = regexp.MustCompile("(?m)^<!-- (.+) -->\n```([a-z]+)\n((?s:.*?))```$")

// Every block of docs/rules.md shows a file of docs/examples as it is, or what
// the command really prints.
func TestRulesPageShowsWhatIsTrue(t *testing.T) {
	t.Chdir("../..") // so that paths print as a reader would see them
	src := upToDate(t, "docs/rules.md", "docs")
	blocks := len(shown.FindAllString(src, -1))
	if blocks < 20 {
		t.Errorf("found %d blocks: are they still marked?", blocks)
	}
	if fences := strings.Count(src, "\n```yaml\n"); fences > blocks {
		t.Errorf("%d YAML blocks, but only %d blocks say which file they show", fences, blocks)
	}
}

// The rules of docs/overload.md are those of the example.
func TestOverloadPageShowsWhatIsTrue(t *testing.T) {
	t.Chdir("../..")
	if src := upToDate(t, "docs/overload.md", "docs"); len(shown.FindAllString(src, -1)) != 1 {
		t.Error("the page does not say which file it shows")
	}
}

// upToDate returns a page, and fails if a block of it does not show its file, which is found
// in folder, or what its command prints. With -update it rewrites the page.
func upToDate(t *testing.T, page, folder string) string {
	t.Helper()
	src, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return keep(t, page, string(src), refreshed(t, string(src), folder))
}

// refreshed returns src with every block as its file or its command is now.
func refreshed(t *testing.T, src, folder string) string {
	t.Helper()
	return shown.ReplaceAllStringFunc(src, func(block string) string {
		m := shown.FindStringSubmatch(block)
		var want string
		if command, ok := strings.CutPrefix(m[1], "$ tidegate "); ok {
			var out bytes.Buffer
			run(t.Context(), Env{Stdout: &out, Stderr: &out, Getenv: os.Getenv}, strings.Fields(command))
			want = out.String()
		} else {
			file, err := os.ReadFile(filepath.Join(folder, m[1]))
			if err != nil {
				t.Error(err)
			}
			want = string(file)
		}
		return "<!-- " + m[1] + " -->\n```" + m[2] + "\n" + want + "```"
	})
}

// keep returns now, what a page has to be. It fails if the page was different; with -update
// it rewrites the page instead.
func keep(t *testing.T, page, was, now string) string {
	t.Helper()
	if now == was {
		return now
	}
	if !*update {
		t.Fatalf("%s does not show what is true: run make docs", page)
	}
	if err := os.WriteFile(page, []byte(now), 0o644); err != nil {
		t.Fatal(err)
	}
	return now
}

// Every example has a test that passes and touches all its rules, and no error
// of lint.
func TestExamples(t *testing.T) {
	testdep.SkipUnderRace(t)
	t.Chdir("../..")
	files, err := filepath.Glob("docs/examples/*.yaml")
	if err != nil || len(files) < 30 {
		t.Fatalf("found %d examples: %v", len(files), err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.yaml") || name == "docs/examples/mistakes.yaml" {
			continue
		}
		t.Run(filepath.Base(name), func(t *testing.T) {
			f := func(args ...string) {
				t.Helper()
				var out bytes.Buffer
				if code := run(t.Context(), Env{Stdout: &out, Stderr: &out, Getenv: os.Getenv}, args); code != exitOK {
					t.Errorf("tidegate %s: exit %d\n%s", strings.Join(args, " "), code, out.String())
				}
			}
			f("lint", name)
			f("test", "--strict", strings.TrimSuffix(name, ".yaml")+"_test.yaml")
		})
	}
}
