package tidegate_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

func readme(t *testing.T) (text string, code []string) {
	raw, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range goBlock.FindAllStringSubmatch(string(raw), -1) {
		code = append(code, m[1])
	}
	return string(raw), code
}

// squeeze leaves indentation and empty lines out of a comparison.
func squeeze(code string) string { return strings.Join(strings.Fields(code), " ") }

// What the README shows has been compiled and run: each piece is in an example.
func TestREADMEShowsCodeOfTheExamples(t *testing.T) {
	var tested string
	for _, file := range []string{"example_test.go", "example_synctest_test.go", "rules/source/example_http_test.go", "fleet/example_test.go"} {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tested += squeeze(string(raw)) + "\n"
	}
	_, code := readme(t)
	pieces := 0
	for _, piece := range code {
		if strings.HasPrefix(piece, "package main\n") {
			continue // a program: the next test runs it
		}
		pieces++
		if !strings.Contains(tested, squeeze(piece)) {
			t.Errorf("this is in no example:\n%s", piece)
		}
	}
	if pieces < 6 {
		t.Errorf("only %d pieces of code were found", pieces)
	}
}

// A stranger who does as the README says, and has no network, gets a program
// that limits.
func TestREADMEProgramRuns(t *testing.T) {
	program := testdep.Need(t, "go")
	text, code := readme(t)
	repo, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "try")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	run := func(args string) string {
		t.Helper()
		if !strings.Contains(text, "    go "+args+"\n") {
			t.Fatalf("the README does not say: go %s", args)
		}
		cmd := exec.Command(program, strings.Fields(strings.Replace(args, "../tidegate", repo, 1))...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=readonly", "GOWORK=off", testdep.WithoutCgo)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", args, err, out)
		}
		return string(out)
	}
	run("mod init try")
	run("mod edit -replace tidegate.dev/tidegate=../tidegate")
	for _, piece := range code {
		if strings.HasPrefix(piece, "package main\n") {
			if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(piece), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	run("mod tidy")
	lines := strings.Split(strings.TrimSpace(run("run .")), "\n")
	if len(lines) != 5 {
		t.Fatalf("it printed %q", lines)
	}
	for i, want := range []string{"true 2 0s", "true 1 0s", "true 0 0s", "false 0 ", "false 0 "} {
		if !strings.HasPrefix(lines[i], want) || lines[i] == "false 0 0s" {
			t.Errorf("line %d is %q, want %q", i, lines[i], want)
		}
	}
}
