package testdep

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A failure counts unless the process stood still, and what an attempt began is cleaned up
// before the next. A machine that is busy for long is waited for.
func TestUndisturbed(t *testing.T) {
	const forEver = time.Hour
	runs, open := 0, 0
	undisturbed(t, 0, 0, func(t testing.TB) { // every run is disturbed
		if open != 0 {
			t.Error("the attempt before was not cleaned up")
		}
		open++
		t.Cleanup(func() { open-- })
		if runs++; runs < 3 {
			t.Fatal("not yet")
		}
	}, nil)
	if runs != 3 || open != 0 {
		t.Errorf("%d runs, %d open", runs, open)
	}
	synctest.Test(t, func(t *testing.T) {
		runs = 0
		undisturbed(t, 0, time.Hour, func(t testing.TB) {
			if runs++; runs < 3*attempts {
				t.Fatal("not yet")
			}
		}, nil)
		if runs != 3*attempts {
			t.Errorf("%d runs on a machine that is busy for a while", runs)
		}
	})
	runs = 0
	Undisturbed(t, forEver, func(testing.TB) { runs++ })
	if runs != 1 {
		t.Errorf("%d runs of what succeeds", runs)
	}
}

// TestUndisturbedFails runs itself in a process of its own, where it has to fail.
func TestUndisturbedFails(t *testing.T) {
	const role = "TIDEGATE_TEST_UNDISTURBED"
	fail := func(t testing.TB) { t.Errorf("it is broken") }
	switch os.Getenv(role) {
	case "calm":
		Undisturbed(t, time.Hour, fail)
	case "busy":
		undisturbed(t, 0, 0, fail, nil)
	default:
		for _, kind := range []string{"calm", "busy"} {
			c := exec.Command(os.Args[0], "-test.run=^TestUndisturbedFails$", "-test.v")
			c.Env = append(os.Environ(), role+"="+kind)
			out, err := c.CombinedOutput()
			tries := strings.Count(string(out), "it is broken")
			if err == nil || kind == "calm" && tries != 2 || kind == "busy" && tries != attempts {
				t.Errorf("%s: %v after %d attempts\n%s", kind, err, tries, out)
			}
		}
	}
}
