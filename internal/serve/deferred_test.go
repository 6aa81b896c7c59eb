//go:build unix

package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// Every order that was answered 202 is sent, whenever the gateway is killed; each has its effect once, in the
// order of its customer; and no customer exceeds its limit.
func testDeferredKilled(t *testing.T, bin string) {
	customers, each, kills, rate := 5, 30, 3, 5 // a rate that a busy machine exceeds, too
	if long() {
		each, kills, rate = 2000, 20, 10
	}
	upstream := newShop(t)
	w := newSandbox(t, bin, "rules.yaml", deferRulesOf(fmt.Sprint(rate, "/second")))
	args := []string{"--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0", "--rules=rules.yaml", "--upstreams=" + upstream.URL, "--defer.file=deferred"}
	var mu sync.Mutex
	at := ""
	s := w.serve("", nil, args...)
	at, _ = s.ready()
	o := &orders{t: t, at: map[string][]string{}, gateway: func() string { mu.Lock(); defer mu.Unlock(); return at }, pause: 25 * time.Millisecond}
	for i := range customers {
		o.sent.Go(func() { o.send(fmt.Sprint("customer-", i), each) })
	}
	w.until("orders wait", func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		n := 0
		for _, all := range o.at {
			n += len(all)
		}
		return n > 20
	})
	for i := range kills {
		s.signal(syscall.SIGKILL)
		s.end()
		s = w.serve("", nil, args...)
		now, _ := s.ready()
		mu.Lock()
		at = now
		mu.Unlock()
		if i < kills-1 { // between two kills some are sent
			before := upstream.count()
			w.until("some are sent", func() bool { return upstream.count() > before+rand.IntN(10) || upstream.count() == customers*each })
		}
	}
	o.sent.Wait()
	testdep.Await(testTimeout+time.Duration(each/rate)*time.Second, func() bool { return upstream.count() >= customers*each })
	for i := range customers {
		customer := fmt.Sprint("customer-", i)
		var want []string
		for i := range each {
			want = append(want, fmt.Sprint(i))
		}
		if got := upstream.effects[customer]; !slices.Equal(got, want) {
			t.Errorf("%s: %d effects, want %d in their order: %v", customer, len(got), each, firstDifference(got, want))
		}
		for _, place := range o.at[customer] {
			w.until("it is done", func() bool { return strings.Contains(deferredStatus(w, at+place, customer), `"state":"done"`) })
		}
	}
	upstream.neverOver(t, rate, time.Second)
	kept, arrived := 0, 0
	for i := range customers {
		kept += len(o.at[fmt.Sprint("customer-", i)])
		arrived += len(upstream.arrived[fmt.Sprint("customer-", i)])
	}
	t.Logf("%d orders, %d answered 202, %d kills, %d arrivals at the upstream, %d effects", customers*each, kept, kills, arrived, upstream.count())
	if kept < customers*each/2 {
		t.Errorf("only %d were deferred: this tests nothing", kept)
	}
}

// Where the disk takes no more, orders are refused and those that were accepted are sent; the gateway goes on.
func testDeferredFullDisk(t *testing.T, bin string) {
	upstream := newShop(t)
	upstream.answer = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(500); return true }
	w := newSandbox(t, bin, "rules.yaml", deferRulesOf("5/second"))
	// As many blocks as the file may have, of 512 bytes; the log of the process is shorter.
	s := w.serve("ulimit -f 2000;", nil, "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0", "--rules=rules.yaml", "--upstreams="+upstream.URL, "--defer.file=deferred")
	gateway, admin := s.ready()
	body := strings.Repeat("x", 60<<10)
	codes := map[int]int{}
	var places []string
	for end := time.Now().Add(testTimeout); codes[429] < 5 && time.Now().Before(end); {
		code, place := w.order(gateway, "ann", body)
		if codes[code]++; code == 202 {
			places = append(places, place)
		}
	}
	if codes[202] < 3 || codes[202] > 20 || codes[429] < 5 {
		t.Errorf("answers %v; want some that are kept, and then 429", codes)
	}
	s.await(1, "a request was not kept, and is refused")
	if code, _ := w.get(once, gateway+"/other"); code != 500 {
		t.Errorf("another request is answered %d", code)
	}
	upstream.mu.Lock()
	upstream.answer = nil
	upstream.mu.Unlock()
	w.until("all that were accepted are sent", func() bool { return upstream.count() >= len(places) })
	if n := w.metric(admin, `tidegate_deferred_requests_total{outcome="failed",rule="orders"}`); n < 5 {
		t.Errorf("%v failed", n)
	}
	for _, place := range places {
		w.until("it is done", func() bool { return strings.Contains(deferredStatus(w, gateway+place, "ann"), `"state":"done"`) })
	}
	if code, _ := w.order(gateway, "bob", body); code != 200 {
		t.Errorf("a new customer is answered %d", code)
	}
}

// With a damaged file the gateway goes on, keeps nothing, and says so; the file stays as it is.
func testDeferredDamaged(t *testing.T, bin string) {
	upstream := newShop(t)
	damage := strings.Repeat("this is not a database\n", 1000)
	w := newSandbox(t, bin, "rules.yaml", deferRulesOf("10/hour"), "deferred", damage)
	s := w.serve("", nil, "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0", "--rules=rules.yaml", "--upstreams="+upstream.URL, "--defer.file=deferred")
	gateway, admin := s.ready()
	codes := map[int]int{}
	for range 15 {
		code, _ := w.order(gateway, "ann", "x")
		codes[code]++
	}
	if codes[200] != 10 || codes[429] != 5 {
		t.Errorf("answers %v", codes)
	}
	if _, body := w.get(once, admin+"/healthz"); !strings.Contains(body, "damaged") {
		t.Errorf("/healthz: %s", body)
	}
	if out, code := w.tidegate("deferred", "--server", admin); code != 1 || !strings.Contains(out, "damaged") {
		t.Errorf("tidegate deferred: %d %s", code, out)
	}
	if left, err := os.ReadFile(filepath.Join(w.dir, "deferred")); err != nil || string(left) != damage {
		t.Errorf("%d bytes are left, %v", len(left), err)
	}
}

// tidegate runs the command, and returns what it printed and its exit code.
func (w *sandbox) tidegate(args ...string) (string, int) {
	w.Helper()
	var out bytes.Buffer
	c := exec.Command(w.bin, args...)
	c.Dir, c.Stdout, c.Stderr = w.dir, &out, &out
	_ = c.Run() // its exit code says it
	return out.String(), c.ProcessState.ExitCode()
}

// An upgrade hands the file over; nothing is lost, and the limit holds.
func testDeferredUpgrade(t *testing.T, bin string, flags ...string) {
	upstream := newShop(t)
	w := newSandbox(t, bin, "rules.yaml", deferRules)
	s := w.serve("", nil, append(flags, "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0", "--rules=rules.yaml", "--upstreams="+upstream.URL, "--defer.file=deferred")...)
	gateway, _ := s.ready()
	o := &orders{t: t, at: map[string][]string{}, gateway: func() string { return gateway }}
	o.send("ann", 30)
	s.signal(syscall.SIGUSR2)
	s.await(2, "serving")
	o.send("bob", 30)
	w.until("all are sent", func() bool { return upstream.count() == 60 })
	upstream.neverOver(t, 10, time.Second)
	for _, customer := range []string{"ann", "bob"} {
		for i, got := range upstream.effects[customer] {
			if got != fmt.Sprint(i) {
				t.Fatalf("%s: number %d is %s", customer, i, got)
			}
		}
	}
	for _, place := range o.at["ann"] { // of the predecessor
		w.until("it is done", func() bool { return strings.Contains(deferredStatus(w, gateway+place, "ann"), `"state":"done"`) })
	}
}

// Operators see what is kept, and have it tried, dropped and drained; that is in the audit log.
func testDeferredCommands(t *testing.T, bin string) {
	upstream := newShop(t)
	upstream.answer = func(w http.ResponseWriter, r *http.Request) bool {
		w.WriteHeader(map[string]int{"ann": 401, "bob": 500}[r.Header.Get("X-Customer")])
		return true
	}
	w := newSandbox(t, bin, "rules.yaml", deferRulesOf("2/second"))
	s := w.serve("", nil, "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0", "--rules=rules.yaml", "--upstreams="+upstream.URL, "--defer.file=deferred", "--admin.audit=audit")
	gateway, admin := s.ready()
	places := map[string]string{}
	for _, customer := range []string{"ann", "bob"} {
		w.until("one is kept", func() bool {
			code, place := w.order(gateway, customer, "x")
			places[customer] = place
			return code == 202
		})
	}
	ann, bob := filepath.Base(places["ann"]), filepath.Base(places["bob"])
	run := func(want int, args ...string) string {
		t.Helper()
		out, code := w.tidegate(append(append([]string{"deferred"}, args...), "--server", admin)...)
		if code != want {
			t.Errorf("tidegate deferred %s: exit %d\n%s", strings.Join(args, " "), code, out)
		}
		return out
	}
	w.until("one is dead", func() bool { return strings.Contains(run(0, "show", ann), "401") })
	w.until("one was tried", func() bool { return strings.Contains(run(0, "show", bob), "500") })
	if out := run(0); !strings.Contains(out, "1 wait, 0 done, 1 dead") || !strings.Contains(out, bob) {
		t.Errorf("%s", out)
	}
	var list struct {
		Requests []struct{ ID, State, Path string }
	}
	if err := json.Unmarshal([]byte(run(0, "list", "--state", "dead", "--json")), &list); err != nil || len(list.Requests) != 1 || list.Requests[0].ID != ann || list.Requests[0].Path != "/orders" {
		t.Errorf("%+v %v", list, err)
	}
	run(2, "drop", bob) // without a reason
	run(2, "drain", "--rule", "orders")
	run(1, "show", "nobody")
	run(1, "retry", "nobody")
	if got := run(0, "drop", bob, "--reason", "sent by hand"); !strings.Contains(got, "1 dropped") {
		t.Errorf("%s", got)
	}
	if got := deferredStatus(w, gateway+places["bob"], "bob"); !strings.Contains(got, "sent by hand") {
		t.Errorf("%s", got)
	}
	upstream.mu.Lock()
	upstream.answer = nil
	upstream.mu.Unlock()
	run(0, "retry", "--rule", "orders", "--state", "dead", "--reason", "the keys are back")
	run(0, "drain", "--reason", "this machine goes")
	if got := deferredStatus(w, gateway+places["ann"], "ann"); !strings.Contains(got, `"state":"done"`) {
		t.Errorf("%s", got)
	}
	w.until("one is refused", func() bool {
		code, _ := w.order(gateway, "ann", "x")
		if code == 202 {
			t.Error("one is kept while it drains")
		}
		return code == 429
	})
	run(0, "drain", "--off")
	audit, err := os.ReadFile(filepath.Join(w.dir, "audit"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"deferred drop"`, `"deferred retry"`, `"deferred drain"`, "sent by hand"} {
		if !strings.Contains(string(audit), want) {
			t.Errorf("the audit log has no %s", want)
		}
	}
}
