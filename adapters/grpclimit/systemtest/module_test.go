package systemtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

const program = `package main

import (
	"google.golang.org/grpc"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/adapters/grpclimit"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/store/memory"
)

func main() {
	lim := tidegate.New(memory.New(), tidegate.PerMinute(100))
	grpc.NewServer(grpclimit.Limit(lim, httplimit.IP()).ServerOptions()...)
}
`

// A program of another module that limits gRPC gets no dependency of another adapter, nor of a
// store that it does not use.
func TestOutsideModule(t *testing.T) {
	tool := testdep.Need(t, "go")
	repo, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"mod", "init", "outside"},
		{"mod", "edit", "-replace", "tidegate.dev/tidegate=" + repo},
		{"mod", "edit", "-replace", "tidegate.dev/tidegate/adapters/grpclimit=" + filepath.Join(repo, "adapters", "grpclimit")},
		{"mod", "tidy", "-e"}, // without network: what only tests of dependencies need may be missing
		{"vet", "."},
	} {
		cmd := exec.Command(tool, args...)
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
			if strings.HasPrefix(line, "replace ") {
				continue // a folder may have any name
			}
			for _, foreign := range []string{"rueidis", "etcd", "prometheus", "fsnotify", "gin-gonic", "labstack", "gorilla", "go-chi"} {
				if strings.Contains(line, foreign) {
					t.Errorf("%s has %s", file, strings.TrimSpace(line))
				}
			}
		}
		t.Logf("%s has %d lines", file, strings.Count(string(text), "\n"))
	}
}
