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
	"tidegate.dev/tidegate/internal/serve/origins"
	"tidegate.dev/tidegate/rules/source"
)

// patientStore is a deadline that a busy machine does not miss, for tests that count what Redis admits.
const patientStore = "--store.deadline=10s"

// serving runs tidegate serve, and returns the URLs of its gateway and its admin listener.
func serving(t *testing.T, program string, args ...string) (gateway, admin string) {
	t.Helper()
	log := new(testdep.Output)
	read, write := io.Pipe()
	c := exec.Command(program, append([]string{"serve", "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0", "--demo"}, args...)...)
	c.Stdout = io.MultiWriter(log, write)
	c.Stderr = c.Stdout
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Wait()
		_ = write.Close()
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("%q logged:\n%s", args, log)
		}
	})
	found := make(chan []string, 1)
	go func() {
		for lines := bufio.NewScanner(read); lines.Scan(); {
			if m := servingLine.FindStringSubmatch(lines.Text()); m != nil {
				found <- m
			}
		}
	}()
	select {
	case m := <-found:
		return m[1], m[3]
	case <-ended:
		t.Fatal("it has ended")
	case <-time.After(time.Minute):
		t.Fatal("it does not serve")
	}
	return "", ""
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

// limiting are rules with a limit per user.
func limiting(limit int, more string) string {
	return fmt.Sprintf("version: 1\nrules:\n  - { name: api, per: user, limits: %d/hour%s }\n", limit, more)
}

const (
	identifying = "version: 1\nidentify:\n  user: header X-User\n"
	replacing   = ", replace: true"
)

// rulesIn runs tidegate rules.
func rulesIn(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.Command(program, append([]string{"rules"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("tidegate rules %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// pushed returns how to push rules with a limit in a source; begin are the files beside them.
func pushed(t *testing.T, program, url, more string, begin ...string) func(limit int, reason string) {
	t.Helper()
	folder := t.TempDir()
	for i, text := range begin {
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("begin-%d.yaml", i)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return func(limit int, reason string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, "rules.yaml"), []byte(limiting(limit, more)), 0o600); err != nil {
			t.Fatal(err)
		}
		rulesIn(t, program, "push", folder, "--to", url, "--reason", reason, "--unchecked") // a layer alone lacks names
	}
}

// A set that is pushed takes effect on every instance while traffic runs, and a rollback brings
// the former decisions back: the same limits for newcomers, and for those who came before what
// they had left. It may be all rules, one layer of two sources, or two layers of one source.
func TestRollbackRestoresDecisions(t *testing.T) {
	program := theCommand(t)
	t.Run("one source", func(t *testing.T) {
		url := "redis://" + testdep.Redis(t).Addr
		testRollback(t, program, url, pushed(t, program, url, "", identifying), url)
	})
	t.Run("one of two sources", func(t *testing.T) {
		url := "redis://" + testdep.Redis(t).Addr
		pushed(t, program, url+"#company", "", identifying)(1000, "for all")
		testRollback(t, program, url+"#team", pushed(t, program, url+"#team", replacing), url+"#company", url+"#team")
	})
	t.Run("two layers in one source", func(t *testing.T) {
		url := "redis://" + testdep.Redis(t).Addr
		origin, err := origins.Open(url, origins.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = origin.Close() })
		head := ""
		testRollback(t, program, url, func(limit int, reason string) {
			t.Helper()
			b := &source.Bundle{
				Edition: source.Edition{Author: "ann", Reason: reason}, Main: "1/rules.yaml", Over: []string{"2/"},
				Files: map[string][]byte{
					"1/rules.yaml": []byte(limiting(1000, "") + strings.TrimPrefix(identifying, "version: 1\n")),
					"2/team.yaml":  []byte(limiting(limit, replacing)),
				},
			}
			b.Hash = b.Sum()
			if head, err = origin.(source.Archive).Publish(t.Context(), b, head); err != nil {
				t.Fatal(err)
			}
		}, url)
	})
}

// testRollback pushes in a source of two instances, and goes back there.
func testRollback(t *testing.T, program, url string, push func(limit int, reason string), sources ...string) {
	push(10, "the good one")
	args := []string{"--trust.proxies=127.0.0.1", "--store.redis=redis://" + testdep.Redis(t).Addr, patientStore}
	for _, s := range sources {
		args = append(args, "--rules="+s)
	}
	var gateways []string
	for i := range 2 {
		gateway, _ := serving(t, program, append(args, fmt.Sprint("--store.instance=web-", i))...)
		gateways = append(gateways, gateway)
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
				case <-time.After(2 * time.Millisecond):
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
			testdep.Eventually(t, fmt.Sprintf("a limit of %d at %s", limit, g), func() bool {
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

	if out := rulesIn(t, program, "rollback", "--to", url, "--to-revision", "1", "--reason", "it refuses customers"); !strings.Contains(out, "revision 3-") {
		t.Errorf("%s", out)
	}
	inForce(10)
	if got := admits(t, gateways[1], "ann", 8); got != 5 {
		t.Errorf("ann had 5 left of 10, and is admitted %d times", got)
	}
	if got := admits(t, gateways[0], "bob", 3); got != 0 {
		t.Errorf("bob had used up everything, and is admitted %d times", got)
	}
	testdep.Eventually(t, "a hundred requests of others", func() bool { return sent.Load() >= 100 }) // all this may take less time
	stopTraffic()
	if failed.Load() > 0 {
		t.Errorf("%d requests of others, %d of them failed", sent.Load(), failed.Load())
	}
	t.Logf("%d requests across a push and a rollback, none failed", sent.Load())
	if !strings.Contains(rulesIn(t, program, "history", "--from", url), ": it refuses customers") {
		t.Error("the history does not say why")
	}
}
