//go:build unix

package serve

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/front/admin"
)

// rules runs tidegate rules and returns what it printed, and its exit code.
func (w *sandbox) rules(args ...string) (code int, out string) {
	w.Helper()
	var b bytes.Buffer
	c := exec.Command(w.bin, append([]string{"rules"}, args...)...)
	c.Dir, c.Stdout, c.Stderr = w.dir, &b, &b
	_ = c.Run() // its exit code says it
	return c.ProcessState.ExitCode(), b.String()
}

func (w *sandbox) rulesStatus(at string) (is admin.RulesStatus) {
	w.Helper()
	_, body := w.get(once, at+"/rules/status")
	if err := json.Unmarshal([]byte(body), &is); err != nil {
		w.Fatalf("%v: %s", err, body)
	}
	return is
}

func (w *sandbox) rulesHistory(at string) (sets []admin.PastSet) {
	w.Helper()
	var past admin.PastRules
	_, body := w.get(once, at+"/rules/history")
	if err := json.Unmarshal([]byte(body), &past); err != nil || past.Incomplete != "" {
		w.Fatalf("%v: %s", err, body)
	}
	return past.Sets
}

// Two instances on Redis say which rules they apply; what is wrong in the files of both is told
// once, with both; one that has other rules is found; and what was in force can be had again.
func testRulesOfFleet(t *testing.T, bin string) {
	server := testdep.Redis(t)
	w := newSandbox(t, bin)
	for _, name := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(w.dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	both := func(text string) {
		w.write("a/rules.yaml", text)
		w.write("b/rules.yaml", text)
	}
	both(counting("3/hour"))
	serve := func(name string) (at string) {
		s := w.serveRedis("redis://"+server.Addr, "--store.instance="+name, "--rules="+filepath.Join(name, "rules.yaml"))
		_, at = s.ready()
		return at
	}
	a, b := serve("a"), serve("b")
	current := func() bool { is := w.rulesStatus(a); return len(is.Instances) == 2 && len(is.Refusals) == 0 }
	w.until("both answer", current)
	is := w.rulesStatus(b)
	if x, y := is.Instances[0], is.Instances[1]; x.Name != "a" || y.Name != "b" || x.Hash == "" || x.Hash != y.Hash || x.Self || !y.Self || x.Rules != 2 {
		t.Errorf("%+v", is.Instances)
	}
	first := is.Instances[0].Hash

	bad := strings.Replace(counting("3/hour"), "3/hour", "3/hors", 1)
	both(bad)
	refusing := func(names string) func() bool {
		return func() bool {
			is := w.rulesStatus(a)
			var on []string
			for _, r := range is.Refusals {
				on = append(on, r.On...)
			}
			return strings.Join(on, " ") == names
		}
	}
	w.until("both refuse it", refusing("a b"))
	if code, out := w.rules("status", "--check", "--server", b); code != 1 || !strings.Contains(out, "hors") || !strings.Contains(out, "a is behind") {
		t.Errorf("%d %s", code, out)
	}
	both(counting("5/hour"))
	w.until("both have mended ones", func() bool {
		is := w.rulesStatus(b)
		return current() && is.Instances[0].Hash == is.Instances[1].Hash && is.Instances[0].Hash != first
	})
	w.until("the history has both sets once", func() bool { return len(w.rulesHistory(a)) == 2 })
	sets := w.rulesHistory(b)
	if sets[1].Hash != first || sets[0].Hash == first || !sets[0].InForce || sets[1].InForce {
		t.Errorf("%+v", sets)
	}
	if code, out := w.rules("pull", "before", "--revision", first[:8], "--server", b); code != 0 {
		t.Errorf("%d %s", code, out)
	}
	if text, err := os.ReadFile(filepath.Join(w.dir, "before", "rules.yaml")); err != nil || string(text) != counting("3/hour") {
		t.Errorf("%v: %s", err, text)
	}
	w.write("b/rules.yaml", counting("9/hour"))
	w.until("one has other rules", func() bool {
		code, out := w.rules("status", "--check", "--server", a)
		return code == 1 && strings.Contains(out, "differ")
	})
	server.Kill()
	if is := w.rulesStatus(a); len(is.Instances) != 2 || is.Instances[0].Unanswered != "" || is.Instances[1].Unanswered == "" {
		t.Errorf("without Redis: %+v", is)
	}
}

// Without Redis each instance has its history: in memory, which a successor gets, and beside
// the snapshot, which also a restart finds.
func testRulesHistory(t *testing.T, bin string) {
	for name, flags := range map[string][]string{"memory": nil, "snapshot": {"--store.memory.snapshot=counters"}} {
		t.Run(name, func(t *testing.T) {
			w := newSandbox(t, bin, "rules.yaml", counting("3/hour"))
			serve := func() *serving {
				return w.serve("", nil, append([]string{"--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0"}, flags...)...)
			}
			s := serve()
			_, at := s.ready()
			w.write("rules.yaml", counting("4/hour"))
			w.until("two sets", func() bool { return len(w.rulesHistory(at)) == 2 })
			s.signal(syscall.SIGUSR2)
			s.await(2, "serving")
			if code := s.end(); code != 0 {
				t.Fatalf("the predecessor exits with %d", code)
			}
			if sets := w.rulesHistory(at); len(sets) != 2 || !sets[0].InForce {
				t.Errorf("the successor has %+v", sets)
			}
			w.write("rules.yaml", counting("5/hour"))
			w.until("three sets", func() bool { return len(w.rulesHistory(at)) == 3 })
			if code, out := w.rules("status", "--check", "--server", at); code != 0 || !strings.Contains(out, "current") {
				t.Errorf("%d %s", code, out)
			}
			if flags == nil {
				return
			}
			next := int(s.lines(upgradedLine)[0]["successor"].(float64))
			if err := syscall.Kill(next, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			_, at = serve().ready()
			if sets := w.rulesHistory(at); len(sets) != 3 || !sets[0].InForce {
				t.Errorf("after it was killed there are %+v", sets)
			}
		})
	}
}
