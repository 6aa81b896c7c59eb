package cli

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// theCommand is this binary under the name by which it is the command.
func theCommand(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "tidegate")
	if err := os.Symlink(self, name); err != nil {
		t.Fatal(err)
	}
	return name
}

// gateway runs tidegate serve, and returns the URL of its gateway.
func gateway(t *testing.T, program string, args ...string) string {
	t.Helper()
	log := new(testdep.Output)
	read, write := io.Pipe()
	c := exec.Command(program, append([]string{"serve", "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0", "--demo"}, args...)...)
	c.Stdout = io.MultiWriter(log, write)
	c.Stderr = c.Stdout
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		_ = write.Close()
		if t.Failed() {
			t.Logf("%q logged:\n%s", args, log)
		}
	})
	found := make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(read); lines.Scan(); {
			if m := servingLine.FindStringSubmatch(lines.Text()); m != nil {
				found <- m[1]
			}
		}
	}()
	select {
	case url := <-found:
		return url
	case <-time.After(time.Minute):
		t.Fatal("it does not serve")
		return ""
	}
}

// ask sends a request as somebody and returns the status.
func ask(t *testing.T, url, user string) int {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, url+"/api/things", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-User", user)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return 0
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	return answer.StatusCode
}

// admits returns how many of n requests of somebody are admitted.
func admits(t *testing.T, url, user string, n int) (admitted int) {
	t.Helper()
	for range n {
		if ask(t, url, user) == http.StatusOK {
			admitted++
		}
	}
	return admitted
}

// A set that is pushed takes effect on every instance while traffic runs, and a rollback brings
// the former decisions back: the same limits for newcomers, and for those who came before what
// they had left.
func TestRollbackRestoresDecisions(t *testing.T) {
	redis := testdep.Redis(t)
	program, url := theCommand(t), "redis://"+redis.Addr
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(program, append([]string{"rules"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("tidegate rules %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	folder := t.TempDir()
	push := func(limit int, reason string) {
		t.Helper()
		text := fmt.Sprintf("version: 1\nidentify:\n  user: header X-User\nrules:\n  - name: api\n    per: user\n    limits: %d/hour\n", limit)
		if err := os.WriteFile(filepath.Join(folder, "rules.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		run("push", folder, "--to", url, "--reason", reason)
	}
	push(10, "the good one")
	var gateways []string
	for i := range 2 {
		gateways = append(gateways, gateway(t, program, "--rules="+url, "--store.redis="+url, fmt.Sprint("--store.instance=web-", i), "--trust.proxies=127.0.0.1"))
	}

	// Traffic of others never fails: it is admitted or refused.
	var traffic sync.WaitGroup
	var sent, failed atomic.Int64
	stop := make(chan struct{})
	stopTraffic := sync.OnceFunc(func() {
		close(stop)
		traffic.Wait()
	})
	t.Cleanup(stopTraffic) // before the gateways end
	for i := range 4 {
		traffic.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				sent.Add(1)
				switch status := ask(t, gateways[i%2], fmt.Sprintf("other-%d-%d", i, n/20)); status {
				case http.StatusOK, http.StatusTooManyRequests:
				default:
					failed.Add(1)
					t.Errorf("a request is answered with %d", status)
				}
			}
		})
	}
	fresh := 0
	inForce := func(limit int) { // on every instance
		t.Helper()
		for _, g := range gateways {
			until(t, fmt.Sprintf("a limit of %d at %s", limit, g), func() bool {
				fresh++
				return admits(t, g, fmt.Sprint("fresh-", fresh), limit+1) == limit
			})
		}
	}
	inForce(10)
	if got := admits(t, gateways[0], "ann", 5); got != 5 {
		t.Fatalf("ann: %d of 5", got)
	}
	if got := admits(t, gateways[1], "bob", 12); got != 10 {
		t.Fatalf("bob: %d of 12", got)
	}

	push(3, "the bad one")
	inForce(3)
	for i, g := range gateways {
		if got := admits(t, g, "ann", 2) + admits(t, g, "bob", 2); got != 0 {
			t.Errorf("instance %d admits %d of those who have used up more than the limit", i, got)
		}
	}

	if out := run("rollback", "--to", url, "--to-revision", "1", "--reason", "it refuses customers"); !strings.Contains(out, "revision 3-") {
		t.Errorf("%s", out)
	}
	inForce(10)
	if got := admits(t, gateways[1], "ann", 8); got != 5 {
		t.Errorf("ann had 5 left of 10, and is admitted %d times", got)
	}
	if got := admits(t, gateways[0], "bob", 3); got != 0 {
		t.Errorf("bob had used up everything, and is admitted %d times", got)
	}
	stopTraffic()
	if sent.Load() < 100 || failed.Load() > 0 {
		t.Errorf("%d requests of others, %d of them failed", sent.Load(), failed.Load())
	}
	t.Logf("%d requests across a push and a rollback, none failed", sent.Load())
	if !strings.Contains(run("history", "--from", url), ": it refuses customers") {
		t.Error("the history does not say why")
	}
}
