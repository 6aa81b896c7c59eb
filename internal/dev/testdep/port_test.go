package testdep

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// A port that was found free is not one that the kernel gives to others who ask for any, and
// nobody else finds it before the test ends.
func TestFreePort(t *testing.T) {
	had := map[string]bool{}
	for range 500 {
		text := FreePort(t)
		if port, err := strconv.Atoi(text); err != nil || port < 1024 || port >= 32768 || had[text] {
			t.Errorf("%s, %v; another test has it: %t", text, err, had[text])
		}
		had[text] = true
	}
	var again string
	t.Run("one that ends", func(t *testing.T) { again = FreePort(t) })
	if port, _ := strconv.Atoi(again); !reserve(port) {
		t.Errorf("%s of a test that has ended is still taken", again)
	} else {
		release(port)
	}
}

// The ports of a process are those of no other.
func TestFreePortsOfProcesses(t *testing.T) {
	const variable = "TIDEGATE_TEST_PORT"
	if text := os.Getenv(variable); text != "" {
		port, _ := strconv.Atoi(text)
		if reserve(port) {
			t.Log("it is free")
		} else {
			t.Log("it is taken")
		}
		return
	}
	if runtime.GOOS == "windows" {
		t.Skip("processes do not know of each other there")
	}
	asks := func(port, want string) {
		t.Helper()
		cmd := exec.Command(os.Args[0], "-test.run=^TestFreePortsOfProcesses$", "-test.v")
		cmd.Env = append(os.Environ(), variable+"="+port)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v, want %q: %s", err, want, out)
		}
	}
	var port string
	t.Run("one that ends", func(t *testing.T) {
		port = FreePort(t)
		asks(port, "it is taken")
	})
	asks(port, "it is free")
}
