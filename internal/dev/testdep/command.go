package testdep

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// commandFolder is where the command is built; it lasts as long as the tests of a package.
var commandFolder string

// WithoutCgo is in the environment of a go command that a test runs. Tests under the race detector
// are run with cgo, and what they build then need not be compiled once more.
const WithoutCgo = "CGO_ENABLED=0"

// Main is TestMain of a package whose tests call [Command].
func Main(m *testing.M) { os.Exit(Tests{m}.Run()) }

// Tests are those of a package that call [Command], for a TestMain that does more than [Main].
type Tests struct{ M *testing.M }

// Run runs them, and returns the exit code.
func (t Tests) Run() int {
	dir, err := os.MkdirTemp("", "tidegate-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	commandFolder = dir
	return t.M.Run()
}

// Command returns tidegate as it is installed, which is built once. It is quicker than the binary
// of a test with the race detector.
func Command(t testing.TB) string {
	t.Helper()
	if commandFolder == "" {
		t.Fatal("TestMain of this package has to call testdep.Main, or to run testdep.Tests")
	}
	bin, err := buildCommand()
	if err != nil {
		t.Fatalf("%v\n%s", err, bin)
	}
	return bin
}

// buildCommand returns the file; with an error, what the compiler says.
var buildCommand = sync.OnceValues(func() (string, error) {
	bin := filepath.Join(commandFolder, "tidegate")
	build := exec.Command("go", "build", "-o", bin, "tidegate.dev/tidegate/cmd/tidegate")
	build.Env = append(os.Environ(), WithoutCgo)
	if out, err := build.CombinedOutput(); err != nil {
		return string(out), err
	}
	return bin, nil
})
