//go:build unix

package serve

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

const handoverRules = `version: 1
identify: { customer: query customer }
rules:
  - { name: load, match: GET /healthz, per: everyone, limits: 10000000/hour }
  - { name: few, match: GET /api/things, per: customer, limits: 3/hour }
`

// once leaves no idle connections, which a server that ends would wait for.
var once = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// spend uses up the limit of a customer.
func (w *sandbox) spend(gateway, customer string) {
	w.Helper()
	for i, want := range []int{200, 200, 200, 429} {
		if got, body := w.get(once, gateway+"/api/things?customer="+customer); got != want {
			w.Fatalf("request %d of %s is answered %d, want %d: %s", i, customer, got, want, body)
		}
	}
}

// exhausted checks that a customer has nothing left, and others have.
func (w *sandbox) exhausted(gateway, customer string) {
	w.Helper()
	if got, _ := w.get(once, gateway+"/api/things?customer="+customer); got != http.StatusTooManyRequests {
		w.Errorf("%s, who has used up everything, is answered %d after the hand-over", customer, got)
	}
	if got, _ := w.get(once, gateway+"/api/things?customer=other-"+customer); got != http.StatusOK {
		w.Errorf("somebody new is answered %d after the hand-over", got)
	}
}

// counted is how many requests a server has counted for everyone.
func (w *sandbox) counted(admin string) int64 {
	w.Helper()
	c := w.counters(admin + "/keys?rule=load")
	if len(c) != 1 {
		w.Fatalf("%d counters", len(c))
	}
	return c[0].Capacity - c[0].Remaining
}

type counter struct{ Remaining, Capacity int64 }

func (w *sandbox) counters(at string) []counter {
	w.Helper()
	_, body := w.get(once, at)
	return w.countersIn(body)
}

// countersIn reads what /keys answers.
func (w *sandbox) countersIn(body string) []counter {
	w.Helper()
	var keys struct{ Counters []counter }
	if err := json.Unmarshal([]byte(body), &keys); err != nil {
		w.Fatalf("%v: %s", err, body)
	}
	return keys.Counters
}

const (
	loadRate = 5000
	loadTime = 4 * time.Second
)

// keeping runs a test of upgrades with every choice of what the process keeps in files: a hand-over
// has to pass on the rest, and to leave the files to the successor. The test gets the flags.
func keeping(test func(t *testing.T, bin string, flags ...string)) func(*testing.T, string) {
	return func(t *testing.T, bin string) {
		const snapshot, state = "--store.memory.snapshot=counters", "--admin.state=state"
		for name, flags := range map[string][]string{"no files": nil, "snapshot": {snapshot}, "state": {state}, "snapshot and state": {snapshot, state}} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, bin, flags...)
			})
		}
	}
}

// A process is replaced by another under load: nobody notices, and nobody is
// refilled. One connection is idle all the time, and used at the end.
func testUpgrade(t *testing.T, bin string) {
	w := newSandbox(t, bin, "rules.yaml", handoverRules)
	s := w.serve("", nil, "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0")
	gateway, admin := s.ready()
	w.spend(gateway, "acme")

	l := &load{address: strings.TrimPrefix(gateway, "http://"), rate: loadRate, conns: 16}
	l.run(loadTime)
	idle := &loadClient{load: &load{address: l.address}}
	if err := idle.ask(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(loadTime / 3)
	s.signal(syscall.SIGUSR2)
	next := s.await(2, "serving")
	if next["gateway"] != gateway || next["admin"] != admin {
		t.Errorf("the successor listens on %v and %v, want %s and %s", next["gateway"], next["admin"], gateway, admin)
	}
	// The predecessor waits for the idle connection, and tells it to leave.
	if err := idle.ask(); err != nil || idle.closed.Load() != 1 {
		t.Errorf("on a connection that was idle: %v, and it was told to leave %d times, want once", err, idle.closed.Load())
	}
	l.wait(t, loadTime)
	if code := s.end(); code != 0 {
		t.Errorf("the predecessor exits with %d", code)
	}
	w.exhausted(gateway, "acme")
	// What the predecessor still counted after it handed over is all that is lost.
	if lost := l.sent.Load() + 1 - w.counted(admin); lost < 0 || lost > 3*int64(l.conns) {
		t.Errorf("%d of %d requests are not counted", lost, l.sent.Load())
	}
	if left, _ := filepath.Glob(filepath.Join(w.temp, "tidegate-handover-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A client that connects anew with every request does not notice either, not even in the middle
// of a TLS handshake.
func testUpgradeTLS(t *testing.T, bin string) {
	cert, key := newCertificate(t, "us")
	w := newSandbox(t, bin, "cert.pem", cert, "key.pem", key)
	s := w.serve("", nil, "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0", "--tls.cert=cert.pem", "--tls.key=key.pem")
	gateway, _ := s.ready()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	var clients sync.WaitGroup
	var asked atomic.Int64
	var enough atomic.Bool
	defer enough.Store(true)
	for range 8 {
		clients.Go(func() {
			for ; !enough.Load(); asked.Add(1) {
				res, err := client.Post(gateway+"/orders", "text/plain", strings.NewReader("one"))
				if err != nil {
					t.Error(err)
					return
				}
				res.Body.Close()
				if res.StatusCode != http.StatusCreated {
					t.Errorf("answered %s", res.Status)
				}
			}
		})
	}
	more := func() {
		t.Helper()
		before := asked.Load()
		w.until("they were answered 500 times more", func() bool { return asked.Load() >= before+500 })
	}
	more()
	s.signal(syscall.SIGUSR2)
	s.await(2, "serving")
	more()
	enough.Store(true)
	clients.Wait()
	t.Logf("%d requests", asked.Load())
	if code := s.end(); code != 0 {
		t.Errorf("the predecessor exits with %d", code)
	}
}

// heldSocket is a socket that somebody else than the process holds, as systemd does, and its file for the process.
func heldSocket(t testing.TB, address string) (net.Listener, *os.File) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	socket, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	return l, socket
}

// A process ends, and another one starts on the socket that somebody else holds,
// as systemd does.
func testRestart(t *testing.T, bin string) {
	testdep.Undisturbed(t, 50*time.Millisecond, func(t testing.TB) {
		w := newSandbox(t, bin, "rules.yaml", handoverRules)
		l, socket := heldSocket(t, "127.0.0.1:0")
		serve := func() *serving {
			return w.serve("LISTEN_FDS=1 LISTEN_FDNAMES=gateway LISTEN_PID=$$", []*os.File{socket},
				"--store.memory.snapshot=counters", "--listen.admin=127.0.0.1:0")
		}
		first := serve()
		gateway, _ := first.ready()
		if want := "http://" + l.Addr().String(); gateway != want {
			t.Fatalf("it listens on %s, want the socket that it was given, %s", gateway, want)
		}
		w.spend(gateway, "acme")

		load := &load{address: l.Addr().String(), rate: loadRate, conns: 16}
		idle := &loadClient{load: load}
		defer idle.close()
		if err := idle.ask(); err != nil {
			t.Fatal(err)
		}
		load.sent.Add(1)
		load.run(loadTime)
		time.Sleep(loadTime / 3)
		first.signal(syscall.SIGTERM)
		if code := first.end(); code != 0 {
			t.Errorf("it exits with %d", code)
		}
		second := serve()
		_, admin := second.ready()
		load.wait(t, loadTime)
		if slowest := time.Duration(load.slowest.Load()); slowest > 4*time.Second {
			t.Errorf("requests waited %s for the next process, as if for an idle connection", slowest)
		}
		w.exhausted(gateway, "acme")
		if counted := w.counted(admin); counted != load.sent.Load() {
			t.Errorf("%d requests are counted of %d", counted, load.sent.Load())
		}
		second.signal(syscall.SIGTERM)
		if code := second.end(); code != 0 {
			t.Errorf("the second exits with %d", code)
		}
	})
}

// A socket that somebody else holds, as systemd does, is used by all successors, whatever address they are told.
func testUpgradeOfHeldSocket(t *testing.T, bin string) {
	w := newSandbox(t, bin, "rules.yaml", handoverRules)
	l, socket := heldSocket(t, "127.0.0.1:0")
	s := w.serve("LISTEN_FDS=1 LISTEN_FDNAMES=gateway LISTEN_PID=$$", []*os.File{socket}, "--listen.gateway=127.0.0.1:1", "--listen.admin=127.0.0.1:0")
	gateway, admin := s.ready()
	w.spend(gateway, "acme")
	s.signal(syscall.SIGUSR2)
	for upgrade := 1; ; upgrade++ {
		next := s.await(upgrade+1, "serving")
		if next["gateway"] != "http://"+l.Addr().String() || next["admin"] != admin {
			t.Fatalf("upgrade %d: the successor listens on %v and %v", upgrade, next["gateway"], next["admin"])
		}
		successor := int(s.await(upgrade, upgradedLine)["successor"].(float64))
		w.exhausted(gateway, "acme")
		if upgrade == 2 {
			return
		}
		if err := syscall.Kill(successor, syscall.SIGUSR2); err != nil {
			t.Fatal(err)
		}
	}
}

// A successor that cannot start, or is told too late, leaves everything as it was.
func testFailedUpgrades(t *testing.T, bin string, flags ...string) {
	w := newSandbox(t, bin, "rules.yaml", handoverRules, "tidegate.yaml", "drain: 2s\n")
	s := w.serve("", nil, append(flags, "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0")...)
	gateway, _ := s.ready()
	w.spend(gateway, "acme")

	const refused = "not upgraded: this process goes on, since its successor did not take over"
	w.write("tidegate.yaml", "drain: soon\n")
	s.signal(syscall.SIGUSR2)
	s.await(1, refused)
	if !strings.Contains(s.logText(), "tidegate.yaml:1:8: error: `drain`") {
		t.Error("it is not said what is wrong with the configuration")
	}
	w.exhausted(gateway, "acme")

	w.write("tidegate.yaml", "drain: 2s\n")
	w.write("rules.yaml", handoverRules+"  - { name: more, limit: 1/hour }\n")
	s.signal(syscall.SIGUSR2)
	s.await(2, refused)
	w.exhausted(gateway, "acme")

	w.write("rules.yaml", handoverRules)
	s.signal(syscall.SIGUSR2)
	s.await(2, "serving")
	if code := s.end(); code != 0 {
		t.Errorf("the predecessor exits with %d", code)
	}
	w.exhausted(gateway, "acme")
}

// A snapshot that is not whole is refused, and the start goes on.
func testBrokenSnapshot(t *testing.T, bin string) {
	w := newSandbox(t, bin, "rules.yaml", handoverRules, "counters", "tidegate memory snapshot 1\nand then the disk was full")
	args := []string{"--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0", "--store.memory.snapshot=counters"}
	s := w.serve("", nil, args...)
	gateway, _ := s.ready()
	line := s.await(1, "the counters could not be restored: all counters start empty")
	if line["level"] != "WARN" || !strings.Contains(line["err"].(string), "not a whole snapshot") {
		t.Errorf("it warns %v", line)
	}
	w.spend(gateway, "acme")
	s.signal(syscall.SIGTERM)
	if code := s.end(); code != 0 {
		t.Errorf("it exits with %d", code)
	}
	again := w.serve("", nil, args...)
	gateway, _ = again.ready()
	w.exhausted(gateway, "acme")
}

// The file of a Unix socket stays where it is through an upgrade, and goes with
// the last process. One that a dead process left is replaced.
func testUnixSocket(t *testing.T, bin string) {
	w := newSandbox(t, bin, "rules.yaml", handoverRules)
	socket := filepath.Join(w.dir, "s")
	dead, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	dead.Close()

	s := w.serve("", nil, "--listen.gateway=unix:s", "--listen.admin=127.0.0.1:0")
	s.ready()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", socket) },
	}}
	ask := func() {
		t.Helper()
		if got, body := w.get(client, "http://tidegate/healthz"); got != http.StatusOK {
			t.Errorf("answered %d: %s", got, body)
		}
	}
	ask()
	s.signal(syscall.SIGUSR2)
	s.await(2, "serving")
	s.end()
	ask()
	successor := s.await(1, upgradedLine)["successor"].(float64)
	if err := syscall.Kill(int(successor), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	w.until("the last process leaves no socket behind", func() bool {
		_, err := os.Lstat(socket)
		return err != nil
	})
}

// A second signal does not wait for requests in hand.
func testSecondSignal(t *testing.T, bin string) {
	reached := make(chan bool, 1)
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		reached <- true
		<-r.Context().Done() // nobody is answered
	}))
	t.Cleanup(upstream.Close) // after the end of who asks
	w := newSandbox(t, bin)
	s := w.serve("", nil, "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0", "--upstreams="+upstream.URL)
	gateway, admin := s.ready()
	slow := make(chan error, 1)
	go func() {
		res, err := http.Get(gateway)
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
		slow <- err
	}()
	select {
	case <-reached:
	case err := <-slow:
		t.Fatalf("the upstream was not asked: %v", err)
	}
	s.signal(syscall.SIGTERM)
	s.await(1, "stopping: no further connections are accepted")
	if got, body := w.get(once, admin+"/readyz"); got != http.StatusServiceUnavailable || !strings.Contains(body, "about to end") {
		t.Errorf("/readyz answers %d while requests end: %s", got, body)
	}
	w.until("it takes no more connections", func() bool {
		conn, err := net.Dial("tcp", strings.TrimPrefix(gateway, "http://"))
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	s.signal(syscall.SIGTERM)
	s.end()
	if err := <-slow; err == nil {
		t.Error("the request in hand was waited for")
	}
}
