package cli

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// TestMain makes this binary the command as well, see [theCommand].
func TestMain(m *testing.M) {
	testscript.Main(testdep.Tests{M: m}, map[string]func(){
		"tidegate": func() { os.Exit(Main(System(), os.Args[1:])) },
	})
}

// theCommand is tidegate as it is installed. With TIDEGATE_LONG=1 it is this binary: with the
// race detector, which is slow to start.
func theCommand(t testing.TB) string {
	t.Helper()
	if !testdep.Long() {
		return testdep.Command(t)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "tidegate") // TestMain runs the command under this name
	if err := os.Symlink(self, name); err != nil {
		t.Fatal(err)
	}
	return name
}

// Each script runs the command as an operator would; -update rewrites what it is
// to print.
func TestScripts(t *testing.T) {
	folder := filepath.Dir(theCommand(t))
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", UpdateScripts: *update, RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", folder+string(filepath.ListSeparator)+env.Getenv("PATH"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"serving": scriptServes, "request": scriptRequests, "becomes": scriptBecomes, "await": scriptAwaits,
			// `redis` starts a server that ends with the tests, and sets REDIS to its URL.
			"redis": func(ts *testscript.TestScript, _ bool, _ []string) {
				ts.Setenv("REDIS", "redis://"+testdep.Redis(t).Addr)
			},
			// `etcd` does the same, and sets ETCD to the URL of a rule set.
			"etcd": func(ts *testscript.TestScript, _ bool, _ []string) {
				ts.Setenv("ETCD", "etcd://"+testdep.Etcd(t).Addr+"/tidegate/rules")
			},
		},
	})
}

var servingLine = regexp.MustCompile(`"msg":"serving","gateway":"(.*?)",(?:"check":"(.*?)",)?"admin":"(.*?)"`)

// scriptServes is `serving ARGS`: it runs tidegate serve in the background until the script ends, and sets GATEWAY,
// CHECK, ADMIN and PID. What it logs is in serve.log.
func scriptServes(ts *testscript.TestScript, _ bool, args []string) {
	log, err := os.Create(ts.MkAbs("serve.log"))
	ts.Check(err)
	read, write, err := os.Pipe()
	ts.Check(err)
	args = append([]string{"serve", "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0"}, args...)
	c := exec.Command(filepath.Join(binFolder(ts), "tidegate"), args...)
	c.Dir, c.Stderr, c.Stdout = ts.MkAbs("."), write, write
	ts.Check(c.Start())
	ts.Check(write.Close())
	ended := make(chan struct{})
	ts.Defer(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		<-ended
		_ = c.Wait()
	})
	found := make(chan []string, 1)
	go func() {
		defer close(ended)
		defer close(found)
		for lines := bufio.NewScanner(read); lines.Scan(); {
			fmt.Fprintln(log, lines.Text())
			if m := servingLine.FindStringSubmatch(lines.Text()); m != nil {
				found <- m
			}
		}
	}()
	select {
	case m := <-found:
		if m == nil {
			ts.Fatalf("tidegate serve ended: %s", ts.ReadFile("serve.log"))
		}
		ts.Setenv("GATEWAY", m[1])
		ts.Setenv("CHECK", m[2]) // "" without --listen.check
		ts.Setenv("ADMIN", m[3])
	case <-time.After(time.Minute):
		ts.Fatalf("tidegate serve does not say that it serves: %s", ts.ReadFile("serve.log"))
	}
	ts.Setenv("PID", strconv.Itoa(c.Process.Pid))
}

// scriptAwaits is `await COMMAND`: it runs a command of the shell until that succeeds, for a minute.
func scriptAwaits(ts *testscript.TestScript, _ bool, args []string) {
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) { // each look starts processes
		err := ts.Exec("sh", append([]string{"-c"}, args...)...)
		if err == nil {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("not within a minute: %v", err)
		}
	}
}

// scriptBecomes is request for a status that is there soon: within a minute, however busy the machine is.
func scriptBecomes(ts *testscript.TestScript, _ bool, args []string) {
	var got string
	if !testdep.Await(time.Minute, func() bool { got = scriptStatus(ts, args); return got == args[0] }) {
		ts.Fatalf("%s %s: still answered %s, want %s", args[1], args[2], got, args[0])
	}
}

// binFolder is where the command is.
func binFolder(ts *testscript.TestScript) string {
	return filepath.SplitList(ts.Getenv("PATH"))[0]
}

// scriptRequests is `request STATUS METHOD URL [HEADER: VALUE]`: the request is answered with that status.
func scriptRequests(ts *testscript.TestScript, _ bool, args []string) {
	if got := scriptStatus(ts, args); got != args[0] {
		ts.Fatalf("%s %s: answered %s, want %s", args[1], args[2], got, args[0])
	}
}

// scriptStatus makes the request of STATUS METHOD URL [HEADER: VALUE].
func scriptStatus(ts *testscript.TestScript, args []string) string {
	if len(args) < 3 {
		ts.Fatalf("usage: request STATUS METHOD URL [HEADER: VALUE]")
	}
	r, err := http.NewRequest(args[1], args[2], nil)
	ts.Check(err)
	for _, header := range args[3:] {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	ts.Check(err)
	ts.Check(answer.Body.Close())
	return strconv.Itoa(answer.StatusCode)
}
