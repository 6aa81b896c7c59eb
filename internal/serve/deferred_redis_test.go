//go:build unix

package serve

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
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

// durableRedis are the arguments of a Redis that may keep requests.
var durableRedis = []string{"--appendonly", "yes", "--appendfsync", "always"}

// deferring is the limit of a rule for each algorithm, whose rate is R a second, and how many times that may pass in a
// second.
var deferring = map[string]struct {
	limit string
	most  int
}{
	"sliding_log":    {"{ rate: R/second, algorithm: sliding_log }", 1},
	"ceiling":        {"{ rate: R/second, algorithm: sub_windows, ceiling: true }", 1},
	"leaky_bucket":   {"{ rate: R/second, algorithm: leaky_bucket }, queue: { places: 2, max_wait: 200ms }", 2},
	"sub_windows":    {"{ rate: R/second, algorithm: sub_windows }", 2},
	"sliding_window": {"{ rate: R/second, algorithm: sliding_window }", 2},
	"fixed_window":   {"{ rate: R/second, algorithm: fixed_window }", 2},
	"token_bucket":   {"{ rate: R/second, algorithm: token_bucket, burst: R }", 2},
}

// deferringRules has a rule for each. While Redis is away they refuse, so that nothing overtakes
// what is kept there.
func deferringRules(rate int) string {
	text := "version: 1\nidentify: { customer: client header X-Customer }\nrules:\n"
	for name, d := range deferring {
		text += fmt.Sprintf("  - { name: %s, match: POST /%s, per: customer, limits: %s, on_store_failure: deny, defer: { keep: 1h, places: 20000, per_key: 5000, max_body: 64KiB } }\n", name, name, strings.ReplaceAll(d.limit, "R", fmt.Sprint(rate)))
	}
	return text
}

// insist sends orders one after the other, to gateways in turns, each until one has taken it. It returns the places of
// those that were kept.
func insist(t testing.TB, gateway func(i int) string, customer string, n int, pause time.Duration) (places []string) {
	client := &http.Client{Timeout: 10 * time.Second}
	turn := 0
	for i := range n {
		for end := time.Now().Add(2 * testTimeout); ; turn++ {
			if time.Now().After(end) {
				t.Errorf("%s: order %d is taken by nobody", customer, i)
				return places
			}
			r, _ := http.NewRequest("POST", gateway(turn)+"/"+customer, strings.NewReader(fmt.Sprint(i)))
			r.Header.Set("X-Customer", customer)
			r.Header.Set("Idempotency-Key", fmt.Sprint(customer, "-", i))
			res, err := client.Do(r)
			if err != nil { // it was killed
				time.Sleep(20 * time.Millisecond)
				continue
			}
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
			if res.StatusCode == 202 {
				places = append(places, res.Header.Get("Location"))
			}
			if res.StatusCode == 202 || res.StatusCode == 200 {
				break
			}
			time.Sleep(20 * time.Millisecond) // Redis is away
		}
		turn++
		time.Sleep(pause)
	}
	return places
}

// Two gateways share what is kept in Redis. Whoever of the three is killed: every order that was answered 202 is
// sent, has its effect once and in the order of its customer, and no customer exceeds its limit.
func testDeferredRedisKilled(t *testing.T, bin string) {
	each, kills, rate := 30, 4, 5 // a rate that a busy machine exceeds, too
	if long() {
		each, kills, rate = 1500, 40, 10
	}
	server := testdep.Redis(t, durableRedis...)
	upstream := newShop(t)
	w := newSandbox(t, bin, "rules.yaml", deferringRules(rate))
	var mu sync.Mutex
	var gateways [2]*serving
	var at [2]string
	start := func(i int) {
		s := w.serveRedis("redis://"+server.Addr, "--rules=rules.yaml", "--upstreams="+upstream.URL, "--defer.takeover=1s", "--store.deadline=2s")
		address, _ := s.ready()
		mu.Lock()
		gateways[i], at[i] = s, address
		mu.Unlock()
	}
	start(0)
	start(1)
	gateway := func(i int) string {
		mu.Lock()
		defer mu.Unlock()
		return at[i%2]
	}
	places := map[string][]string{}
	var sent sync.WaitGroup
	for customer := range deferring {
		sent.Go(func() {
			got := insist(t, gateway, customer, each, 25*time.Millisecond)
			mu.Lock()
			places[customer] = got
			mu.Unlock()
		})
	}
	all := each * len(deferring)
	w.until("some are sent", func() bool { return upstream.count() > all/4 })
	for k := range kills {
		if k%4 == 2 {
			server.Kill()
			server.Start()
		} else {
			gateways[k%2].signal(syscall.SIGKILL)
			gateways[k%2].end()
			start(k % 2)
		}
		before := upstream.count()
		w.until("some are sent", func() bool { return upstream.count() > before+rand.IntN(10) || upstream.count() == all })
	}
	sent.Wait()
	testdep.Await(2*testTimeout+time.Duration(each/rate)*time.Second, func() bool { return upstream.count() >= all })
	kept, arrived := 0, 0
	for customer, d := range deferring {
		var want []string
		for i := range each {
			want = append(want, fmt.Sprint(i))
		}
		upstream.mu.Lock()
		got := slices.Clone(upstream.effects[customer])
		arrived += len(upstream.arrived[customer])
		upstream.mu.Unlock()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d effects, want %d in their order: %s", customer, len(got), each, firstDifference(got, want))
		}
		kept += len(places[customer])
		for i, place := range places[customer] {
			w.until("it is done", func() bool { return strings.Contains(deferredStatus(w, gateway(i)+place, customer), `"state":"done"`) })
		}
		// One that a killed gateway has sent may arrive beside the next.
		upstream.neverOverOf(t, customer, d.most*rate+1, time.Second)
	}
	t.Logf("%d orders, %d answered 202, %d kills, %d arrivals at the upstream, %d effects", all, kept, kills, arrived, upstream.count())
	if kept < all/4 {
		t.Errorf("only %d were deferred: this tests nothing", kept)
	}
}

// A Redis that might lose what was promised keeps the gateway from starting, with advice.
func testDeferredUnfitRedis(t *testing.T, bin string) {
	server := testdep.Redis(t)
	w := newSandbox(t, bin, "rules.yaml", deferRules)
	out, code := w.tidegate("serve", "--store.redis=redis://"+server.Addr, "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0", "--rules=rules.yaml")
	if code != 1 || !strings.Contains(out, "appendfsync always") {
		t.Errorf("exit %d: %s", code, out)
	}
	// With a file it is not needed.
	upstream := newShop(t)
	gateway, _ := w.serveRedis("redis://"+server.Addr, "--rules=rules.yaml", "--upstreams="+upstream.URL, "--defer.file=deferred").ready()
	if code, _ := w.order(gateway, "ann", "x"); code != 200 {
		t.Errorf("%d", code)
	}
}

const streamRules = `version: 1
identify:
  customer: client header X-Customer
rules:
  - { name: orders, match: POST /orders, per: customer, limits: 2/hour, defer: { to: stream orders, places: 3 } }
`

// What a rule appends to a stream, the workers of the documentation get.
func testDeferredStream(t *testing.T, bin string) {
	testdep.Need(t, "redis-cli")
	server := testdep.Redis(t, durableRedis...)
	upstream := newShop(t)
	w := newSandbox(t, bin, "rules.yaml", streamRules)
	gateway, _ := w.serveRedis("redis://"+server.Addr, "--rules=rules.yaml", "--upstreams="+upstream.URL, patientStore).ready()
	var codes []int
	for i := range 6 {
		code, place := w.order(gateway, "ann", fmt.Sprint("order ", i))
		if codes = append(codes, code); place != "" {
			t.Errorf("a place: %s", place)
		}
	}
	if !slices.Equal(codes, []int{200, 200, 202, 202, 202, 429}) {
		t.Errorf("%v; want two that pass, and places for three", codes)
	}
	worker := filepath.Join(w.dir, "streamworker")
	build := exec.Command("go", "build", "-o", worker, "tidegate.dev/tidegate/docs/examples/streamworker")
	build.Env = append(os.Environ(), testdep.WithoutCgo)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := exec.Command(worker, server.Addr, "orders")
	out, err := run.StdoutPipe()
	if err == nil {
		err = run.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for i := range 3 {
		if want := fmt.Sprint(" orders POST /orders order ", i+2); !lines.Scan() || !strings.HasSuffix(lines.Text(), want) || !strings.HasPrefix(lines.Text(), "tidegate-") {
			t.Errorf("%q came, want %q", lines.Text(), want)
		}
	}
	w.until("all have left the stream", func() bool { return server.Do("XLEN", "orders") == "0" })
	_ = run.Process.Kill()
	_ = run.Wait()
	if code, _ := w.order(gateway, "ann", "by the shell"); code != 202 {
		t.Errorf("%d after places are free", code)
	}
	host, port, _ := net.SplitHostPort(server.Addr)
	text, err := exec.Command("../../docs/examples/streamworker/worker.sh", host, port, "orders").CombinedOutput()
	if err != nil || !strings.Contains(string(text), "POST /orders\nby the shell\n") {
		t.Errorf("%v: %s", err, text)
	}
	if n := server.Do("XLEN", "orders"); n != "0" {
		t.Errorf("%s are left", n)
	}
	if n := len(upstream.arrived["ann"]); n != 2 {
		t.Errorf("%d at the upstream, want 2", n)
	}
}
