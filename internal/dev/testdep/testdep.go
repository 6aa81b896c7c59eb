// Package testdep lets a test name an installed program that it needs, such as a
// real redis-server. Start with [Need]. It installs nothing; scripts/test-deps.sh
// does. [Eventually] is for tests that wait for what others do, [Undisturbed] for those that have to act
// within a time, [NewCertificate] for those of TLS.
package testdep

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// skippedFile names the variable with the file that collects what was skipped:
// without -v, go test shows nothing of it, so scripts/test.sh does.
const skippedFile = "TIDEGATE_SKIPPED"

// Need returns the path of program. When the machine does not have it, the test
// is skipped; with CI=true it fails, since nobody reads the skips of a robot.
func Need(t testing.TB, program string) string {
	t.Helper()
	for _, name := range []string{program, "/usr/sbin/" + program} { // where users do not look
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	Missing(t, program, "run scripts/test-deps.sh as root")
	return ""
}

// Missing ends a test for which something is missing that [Need] cannot look for: the test is
// skipped, visibly, and fails with CI=true. The remedy says what to do.
func Missing(t testing.TB, what, remedy string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is missing, and with CI=true that is a failure: %s", what, remedy)
	}
	if err := note(os.Getenv(skippedFile), t.Name(), what); err != nil {
		t.Logf("cannot note the skip: %v", err)
	}
	t.Skipf("%s is missing: %s", what, remedy)
}

// note appends a line in one write, since packages are tested in parallel.
func note(file, test, program string) error {
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "--- SKIP: %s (%s is missing)\n", test, program)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}
