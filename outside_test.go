package tidegate_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// A program of another module can name what it is handed, and gets no dependency that only
// some other front end needs.
func TestOutsideModule(t *testing.T) {
	program := testdep.Need(t, "go")
	repo, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	code, err := os.ReadFile("testdata/outside/main.go")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), code, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"mod", "init", "outside"},
		{"mod", "edit", "-replace", "tidegate.dev/tidegate=" + repo},
		{"mod", "tidy", "-e"}, // without network: what only tests of dependencies need may be missing
		{"vet", "."},
	} {
		cmd := exec.Command(program, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOPROXY=off", "GOSUMDB=off", "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod", "GOWORK=off", testdep.WithoutCgo)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	for _, file := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			module, _, _ := strings.Cut(line, " => ") // the folder of this checkout may have any name
			module, _, _ = strings.Cut(module, " v")  // and a hash any letters
			for _, foreign := range []string{"grpc", "etcd", "opentelemetry", "prometheus", "fsnotify"} {
				if strings.Contains(module, foreign) {
					t.Errorf("%s has %s", file, strings.TrimSpace(line))
				}
			}
		}
	}
}
