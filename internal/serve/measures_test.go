//go:build unix

package serve

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/front/admin"
	"tidegate.dev/tidegate/internal/telemetry/offenders"
)

// orders posts to an admin listener, and returns what it does.
func (w *sandbox) orders(at, path, body string) (e admin.Effect) {
	w.Helper()
	res, err := once.Post(at+path, "application/json", strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK || json.Unmarshal(text, &e) != nil {
		w.Fatalf("%s %s: %v: %d %s", path, body, err, res.StatusCode, text)
	}
	return e
}

// banned reports whether a gateway refuses a customer for good.
func (w *sandbox) banned(gateway, customer string) bool {
	status, _ := w.get(once, gateway+"/api/things?customer="+customer)
	return status == http.StatusForbidden
}

func banOf(customer string) string {
	return `{"kind":"ban","as":{"customer":"` + customer + `"},"for":"1h","reason":"a test"}`
}

// A ban that is ordered at one gateway refuses at the other, and survives a restart of both
// and of Redis. While Redis stands still it holds at once where it was ordered, says where
// it does not yet, and holds there when Redis goes on.
func testBansOnRedis(t *testing.T, bin string) {
	server := testdep.Redis(t, "--appendonly", "yes", "--appendfsync", "always")
	w := newSandbox(t, bin, "rules.yaml", redisRules)
	begin := func() (a, b *serving, gateA, adminA, gateB, adminB string) {
		a, b = w.serveRedis("redis://"+server.Addr, "--rules=rules.yaml", "--store.instance=a"), w.serveRedis("redis://"+server.Addr, "--rules=rules.yaml", "--store.instance=b")
		gateA, adminA = a.ready()
		gateB, adminB = b.ready()
		return a, b, gateA, adminA, gateB, adminB
	}
	a, b, gateA, adminA, gateB, adminB := begin()
	w.until("both know of each other", func() bool { return w.health(adminA).Instances == 2 && w.health(adminB).Instances == 2 })
	if w.banned(gateA, "eve") || w.banned(gateB, "eve") {
		t.Fatal("banned before it was ordered")
	}
	start := time.Now()
	e := w.orders(adminA, "/measures", banOf("eve"))
	if !w.banned(gateA, "eve") {
		t.Error("not banned where it was ordered")
	}
	w.until("banned at the other", func() bool { return w.banned(gateB, "eve") })
	t.Logf("banned on both after %v: %s", time.Since(start), e.Holds)

	for _, s := range []*serving{a, b} {
		s.signal(os.Interrupt)
		if code := s.end(); code != 0 {
			t.Errorf("exits with %d", code)
		}
	}
	server.Kill()
	server.Start()
	_, _, gateA, adminA, gateB, adminB = begin()
	w.until("banned after a restart of everything", func() bool { return w.banned(gateA, "eve") && w.banned(gateB, "eve") })
	w.until("both know of each other again", func() bool { return w.health(adminA).Instances == 2 && w.health(adminB).Instances == 2 })

	w.until("each has told its name", func() bool { // to the one that asks all
		var is offenders.Report
		status, body := w.get(once, adminA+"/offenders")
		if err := json.Unmarshal([]byte(body), &is); err != nil || status != http.StatusOK {
			t.Fatalf("/offenders answers %d: %s", status, body)
		}
		return slices.Equal(slices.Sorted(slices.Values(is.Nodes)), []string{"a", "b"})
	})
	server.Pause()
	e = w.orders(adminA, "/measures", banOf("mallory"))
	if !w.banned(gateA, "mallory") || e.Reach.Everywhere() || !strings.Contains(e.Holds, "not yet on b") {
		t.Errorf("while Redis stands still: %s", e.Holds)
	}
	server.Resume()
	w.until("the other has it when Redis goes on", func() bool { return w.banned(gateB, "mallory") })
	w.orders(adminB, "/measures/end", `{"kind":"ban","as":{"customer":"eve"}}`)
	w.until("the end is known everywhere", func() bool { return !w.banned(gateA, "eve") && !w.banned(gateB, "eve") })
}

// With counters in memory, bans live in admin.state: they survive a restart and a kill. A file that
// cannot be read refuses to start.
func testBansInMemory(t *testing.T, bin string) {
	w := newSandbox(t, bin, "rules.yaml", redisRules, "bad", "{")
	args := append([]string{"--rules=rules.yaml", "--admin.state=state"}, anyPorts...)
	s := w.serve("", nil, args...)
	gateway, at := s.ready()
	if e := w.orders(at, "/measures", banOf("eve")); !strings.Contains(e.Holds, "kept in the file") {
		t.Errorf("it holds: %s", e.Holds)
	}
	if !w.banned(gateway, "eve") {
		t.Error("not banned")
	}
	s.signal(os.Kill)
	s.end()
	s = w.serve("", nil, args...)
	gateway, at = s.ready()
	if !w.banned(gateway, "eve") {
		t.Error("not banned after a kill")
	}
	w.orders(at, "/measures/end", `{"kind":"ban","as":{"customer":"eve"}}`)
	s.signal(os.Interrupt)
	s.end()
	s = w.serve("", nil, args...)
	if gateway, _ = s.ready(); w.banned(gateway, "eve") {
		t.Error("a ban that was ended is there again after a restart")
	}
	s.signal(os.Interrupt)
	s.end()
	if info, err := os.Stat(w.dir + "/state"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}

	bad := w.serve("", nil, append([]string{"--rules=rules.yaml", "--admin.state=bad"}, anyPorts...)...)
	if code := bad.end(); code == 0 || !strings.Contains(bad.logText(), "bad is damaged") {
		t.Errorf("exits with %d: %s", code, bad.logText())
	}
}

// An upgrade hands bans over, whether there is a file for them or not.
func testBansUpgrade(t *testing.T, bin string, flags ...string) {
	w := newSandbox(t, bin, "rules.yaml", redisRules)
	s := w.serve("", nil, slices.Concat([]string{"--rules=rules.yaml"}, anyPorts, flags)...)
	gateway, at := s.ready()
	holds := "until this process ends"
	if slices.Contains(flags, "--admin.state=state") {
		holds = "kept in the file"
	}
	if e := w.orders(at, "/measures", banOf("eve")); !strings.Contains(e.Holds, holds) {
		t.Errorf("it holds: %s", e.Holds)
	}
	if slices.Contains(flags, "--store.memory.snapshot=counters") { // an upgrade that fails leaves nothing behind
		inTheWay := filepath.Join(w.dir, "counters.new")
		if err := os.MkdirAll(filepath.Join(inTheWay, "x"), 0o700); err != nil {
			t.Fatal(err)
		}
		s.signal(syscall.SIGUSR2)
		s.await(1, "not upgraded: this process goes on, since its successor did not take over")
		if left, err := filepath.Glob(filepath.Join(w.dir, "*.board")); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
		if err := os.RemoveAll(inTheWay); err != nil {
			t.Fatal(err)
		}
	}
	s.signal(syscall.SIGUSR2)
	s.await(2, "serving")
	if code := s.end(); code != 0 {
		t.Errorf("exits with %d", code)
	}
	if !w.banned(gateway, "eve") {
		t.Error("not banned after an upgrade")
	}
}
