//go:build unix

package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// The tests of this file run the command as it is installed, not this binary: the
// race detector would take the machine's breath away.
func TestServe(t *testing.T) {
	bin := testdep.Command(t)
	for name, f := range map[string]func(*testing.T, string){
		"start": testStart, "invitation": testInvitation, "greeting": testGreeting, "upgrade": testUpgrade, "upgrade with TLS": testUpgradeTLS, "restart": testRestart, "inherited open socket": testInheritedOpenSocket, "upgrade of a held socket": testUpgradeOfHeldSocket, "restart with other rules": testRestartWithOtherRules, "failed upgrades": keeping(testFailedUpgrades),
		"broken snapshot": testBrokenSnapshot, "unix socket": testUnixSocket, "certificate": testCertificate, "client certificates": testClientCertificates, "operators": testOperators, "audit": testAudit, "bans on Redis": testBansOnRedis, "bans in memory": testBansInMemory, "second signal": testSecondSignal, "units": testUnits,
		"standing reader": testStandingReader, "standing errors": testStandingErrors, "gone reader": testGoneReader, "full disk": testFullDisk, "rotation": testRotation, "cut off": testCutOffIsLogged,
		"API keys": testAPIKeys, "keys of a URL": testKeysOfURL, "hang up": testHangUp, "kill": testKill, "owner of the snapshot": testSnapshotOwner,
		"doors": testDoors, "settings of doors": testDoorSettings, "log of doors": testDoorLog, "usage": testUsage, "upgrade of doors": keeping(testDoorsUpgrade), "secrets of doors": testDoorSecrets, "mistakes about doors": testDoorMistakes, "socket of a door": testDoorSocketIsGone,
		"domains": testDomains, "few open files": testFewOpenFiles, "many operators": testManyOperators, "control plane": testControlPlane, "traces": testTraces, "no traces": testNoTraces, "refusals": testRefusals, "followers": testFollowers, "web server": testWebServer, "Central Dogma": testCentralDogma, "end with idle connections": testEndWithIdleConnections, "rules of a fleet": testRulesOfFleet, "history of rules": testRulesHistory, "source away": testSourceAway, "stop before there are rules": testStopBeforeRules, "layers": testValidateLayers, "deferred requests and kill -9": testDeferredKilled, "deferred requests and kill -9 with Redis": testDeferredRedisKilled, "deferred requests on an unfit Redis": testDeferredUnfitRedis, "deferred to a stream": testDeferredStream, "deferred requests on a full disk": testDeferredFullDisk, "apply to files": testApplyFiles, "apply to layers": testApplyLayers, "apply to what is only read": testApplyReadOnly, "apply to an archive": testApplyArchive, "apply at once": testApplyAtOnce, "slips of every door": testSlipsOfDoors, "slips of a fleet": testSlipsOfFleet, "mistakes about keys of slips": testSlipKeyMistakes, "a damaged file of deferred requests": testDeferredDamaged, "upgrade with deferred requests": keeping(testDeferredUpgrade), "upgrade with followers": testFollowersUpgrade, "upgrade with bans": keeping(testBansUpgrade), "shed": testShed, "soft for a while": testSoftForAWhile, "soft for a while on Redis": testSoftForAWhileOnRedis, "commands for deferred requests": testDeferredCommands,
	} {
		t.Run(name, func(t *testing.T) {
			if !alone[name] {
				t.Parallel() // most of them wait for something
			}
			f(t, bin)
		})
	}
}

// alone are tests that want the machine for themselves: they send as much as it can take, or have
// to act within a time.
var alone = map[string]bool{"upgrade": true, "upgrade with TLS": true, "restart": true, "end with idle connections": true}

func TestMain(m *testing.M) { testdep.Main(m) }

// testTimeout is how long a test waits for what takes no time when the machine is idle.
const testTimeout = time.Minute

// sandbox is a folder with the files of a server, and the processes that ran in it.
type sandbox struct {
	testing.TB
	bin, dir string
	temp     string   // where processes keep what is not for long
	drafts   string   // where files are written
	env      []string // of processes, beside that of this one

	mu   sync.Mutex
	said []string // failures
}

func newSandbox(t testing.TB, bin string, files ...string) *sandbox {
	w := &sandbox{TB: t, bin: bin}
	t.Cleanup(func() { // after those that show what processes logged, which may be long
		for _, what := range w.said {
			t.Logf("this failed: %s", what)
		}
	})
	w.dir, w.temp, w.drafts = t.TempDir(), t.TempDir(), t.TempDir()
	w.env = []string{"TMPDIR=" + w.temp}
	for i := 0; i < len(files); i += 2 {
		w.write(files[i], files[i+1])
	}
	return w
}

// Errorf implements testing.TB. What it says is said once more in the end.
func (w *sandbox) Errorf(format string, args ...any) {
	w.Helper()
	w.note(format, args...)
	w.TB.Errorf(format, args...)
}

// Fatalf implements testing.TB, as Errorf does.
func (w *sandbox) Fatalf(format string, args ...any) {
	w.Helper()
	w.note(format, args...)
	w.TB.Fatalf(format, args...)
}

func (w *sandbox) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, fmt.Sprintf(format, args...))
}

// write replaces a file, so that who watches it finds all of it or nothing.
func (w *sandbox) write(name, text string) {
	w.Helper()
	draft := filepath.Join(w.drafts, filepath.Base(name))
	err := os.WriteFile(draft, []byte(text), 0o600)
	if err == nil {
		err = os.Rename(draft, filepath.Join(w.dir, name))
	}
	if err != nil {
		w.Fatal(err)
	}
}

// serving is a process that serves.
type serving struct {
	w      *sandbox
	cmd    *exec.Cmd
	ended  chan error
	output string // file of what it and its successors print
}

// serve starts a server without an access log, by a shell that may have words before the
// command.
func (w *sandbox) serve(words string, files []*os.File, args ...string) *serving {
	w.Helper()
	return w.run(words, nil, nil, files, append([]string{"--log.access=off"}, args...)...)
}

// start starts a server that writes to these files; nil are the output.
func (w *sandbox) start(stdout, stderr *os.File, args ...string) *serving {
	w.Helper()
	return w.run("", stdout, stderr, nil, args...)
}

func (w *sandbox) run(words string, stdout, stderr *os.File, files []*os.File, args ...string) *serving {
	w.Helper()
	out, err := os.CreateTemp(w.dir, "output")
	if err != nil {
		w.Fatal(err)
	}
	defer out.Close()
	args = append([]string{"-c", words + ` exec "$0" "$@"`, w.bin, "serve"}, args...)
	s := &serving{w: w, cmd: exec.Command("sh", args...), ended: make(chan error, 1), output: out.Name()}
	s.cmd.Dir, s.cmd.Env, s.cmd.Stdout, s.cmd.Stderr, s.cmd.ExtraFiles = w.dir, append(os.Environ(), w.env...), out, out, files
	if stdout != nil {
		s.cmd.Stdout = stdout
	}
	if stderr != nil {
		s.cmd.Stderr = stderr
	}
	if err := s.cmd.Start(); err != nil {
		w.Fatal(err)
	}
	go func() { s.ended <- s.cmd.Wait() }()
	w.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		s.ended <- <-s.ended // it writes no more files
		for _, line := range s.lines(upgradedLine) {
			w.killSuccessor(int(line["successor"].(float64)))
		}
		if w.Failed() {
			w.Logf("%s:\n%s", strings.Join(args, " "), s.logText())
		}
	})
	return s
}

// killSuccessor ends a process that is no child of this one, and returns when it is gone. Its number
// may be that of somebody else by now, so on Linux its folder is looked at.
func (w *sandbox) killSuccessor(pid int) {
	dir, err := filepath.EvalSymlinks(w.dir)
	if err != nil {
		w.Fatalf("%v", err)
	}
	runs := func() bool {
		if runtime.GOOS != "linux" {
			return syscall.Kill(pid, 0) == nil
		}
		in, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
		return err == nil && in == dir
	}
	w.until("the successor is gone", func() bool {
		if runs() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			return false
		}
		return true
	})
}

func (s *serving) logText() string {
	text, err := os.ReadFile(s.output)
	if err != nil {
		s.w.Fatal(err)
	}
	return string(text)
}

// lines are those of the log with this message.
func (s *serving) lines(msg string) (found []map[string]any) {
	for line := range strings.Lines(s.logText()) {
		var fields map[string]any
		if json.Unmarshal([]byte(line), &fields) == nil && fields["msg"] == msg {
			found = append(found, fields)
		}
	}
	return found
}

// await returns the n-th line with this message.
func (s *serving) await(n int, msg string) map[string]any {
	s.w.Helper()
	var lines []map[string]any
	testdep.Eventually(s.w, fmt.Sprintf("it says %q %d times", msg, n), func() bool {
		ended := s.hasEnded() // it has said by now what it will
		if lines = s.lines(msg); len(lines) < n && ended && len(s.lines(upgradedLine)) == 0 {
			s.w.Fatalf("it has ended, %s, and did not say %q %d times", s.cmd.ProcessState, msg, n)
		}
		return len(lines) >= n
	})
	return lines[n-1]
}

// hasEnded reports whether the process has; its successor may serve.
func (s *serving) hasEnded() bool {
	select {
	case err := <-s.ended:
		s.ended <- err
		return true
	default:
		return false
	}
}

// upgradedLine is the last that a process says which has a successor.
const upgradedLine = "upgraded: a successor took over, and this process ends with its last request"

// ready returns where the server listens.
func (s *serving) ready() (gateway, admin string) {
	s.w.Helper()
	line := s.await(1, "serving")
	return line["gateway"].(string), line["admin"].(string)
}

func (s *serving) signal(sig os.Signal) {
	s.w.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.w.Fatal(err)
	}
}

// end waits until the process has ended, and returns its exit code.
func (s *serving) end() int {
	s.w.Helper()
	select {
	case <-s.ended:
		s.ended <- nil
		return s.cmd.ProcessState.ExitCode()
	case <-time.After(testTimeout):
		s.w.Fatal("it does not end")
		return -1
	}
}

// get returns the status of an answer, and the body.
func (w *sandbox) get(client *http.Client, url string) (int, string) {
	w.Helper()
	res, err := client.Get(url)
	if err != nil {
		w.Fatalf("%v", err)
	}
	defer res.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(res.Body); err != nil {
		w.Fatalf("%s: %v", url, err)
	}
	return res.StatusCode, body.String()
}

// keys runs tidegate keys and returns what it printed.
func (w *sandbox) keys(want int, args ...string) (stdout, stderr string) {
	w.Helper()
	var out, problems bytes.Buffer
	c := exec.Command(w.bin, append([]string{"keys"}, args...)...)
	c.Stdout, c.Stderr = &out, &problems
	_ = c.Run() // its exit code says it
	if code := c.ProcessState.ExitCode(); code != want {
		w.Errorf("tidegate keys %s: exit %d, want %d\n%s%s", strings.Join(args, " "), code, want, out.String(), problems.String())
	}
	return out.String(), problems.String()
}
