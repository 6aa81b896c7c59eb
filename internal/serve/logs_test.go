//go:build unix

package serve

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// ask sends requests over many connections, and fails when one is not answered.
func (w *sandbox) ask(gateway string, requests int) {
	w.Helper()
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
	defer client.CloseIdleConnections()
	path := gateway + "/" + strings.Repeat("x", 2000)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range requests / 8 {
				res, err := client.Get(path)
				if err != nil {
					w.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
		})
	}
	all.Wait()
	if w.Failed() {
		w.FailNow()
	}
}

// metric is the value of a line of /metrics.
func (w *sandbox) metric(admin, name string) (value float64) {
	w.Helper()
	_, page := w.get(once, admin+"/metrics")
	for line := range strings.Lines(page) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			if _, err := fmt.Sscan(rest, &value); err != nil {
				w.Fatal(err)
			}
			return value
		}
	}
	w.Fatalf("there is no %s", name)
	return 0
}

// Nobody reads the access log: requests are served all the same, what finds no room is
// counted, and a line tells when it is read again. It ends in time, too.
func testStandingReader(t *testing.T, bin string) {
	w := newSandbox(t, bin)
	r, stdout, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s := w.start(stdout, nil, "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0")
	stdout.Close()
	gateway, admin := s.ready()
	const dropped = `tidegate_log_dropped_total{log="access"}`
	sent := 0
	for ; w.metric(admin, dropped) == 0; sent += 800 { // 4 MiB and the pipe
		if sent > 20_000 {
			t.Fatal("nothing is dropped")
		}
		w.ask(gateway, 800)
	}
	w.ask(gateway, 800)
	sent += 800
	if line := s.await(1, "the access log cannot be written: lines that do not fit its buffer are dropped and counted"); line["err"] != "its reader stands still" {
		t.Errorf("it warns %v", line)
	}
	lines := make(chan int)
	go func() {
		n := 0
		for in := bufio.NewScanner(r); in.Scan(); n++ {
			if !json.Valid(in.Bytes()) {
				t.Errorf("no JSON: %.100q", in.Text())
			}
		}
		lines <- n
	}()
	line := s.await(1, "the access log is written again")
	lost := w.metric(admin, dropped)
	if line["dropped"] != lost {
		t.Errorf("it tells of %v lines, and counts %v", line["dropped"], lost)
	}
	w.ask(gateway, 80)
	sent += 80
	s.signal(syscall.SIGTERM)
	if code := s.end(); code != 0 {
		t.Errorf("it exits with %d", code)
	}
	if got := <-lines; got+int(lost) != sent {
		t.Errorf("%d lines are written and %v dropped of %d", got, lost, sent)
	}
}

// Nobody reads what the process says about itself.
func testStandingErrors(t *testing.T, bin string) {
	w := newSandbox(t, bin)
	r, stderr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	// Every upgrade of an upstream that is gone is told of.
	s := w.start(nil, stderr, "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0", "--log.access=stderr", "--upstreams=http://127.0.0.1:1", "--log.level=debug")
	stderr.Close()
	var gateway, admin string
	in := bufio.NewReader(r)
	for gateway == "" {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		var printed struct{ Msg, Gateway, Admin string }
		if json.Unmarshal([]byte(line), &printed) == nil && printed.Msg == "serving" {
			gateway, admin = printed.Gateway, printed.Admin
		}
	}
	const dropped = `tidegate_log_dropped_total{log="process"}`
	for sent := 0; w.metric(admin, dropped) == 0; sent += 800 {
		if sent > 20_000 {
			t.Fatal("nothing is dropped")
		}
		w.ask(gateway, 800)
	}
	s.signal(syscall.SIGHUP) // which is logged
	w.ask(gateway, 80)
	s.signal(syscall.SIGTERM)
	if code := s.end(); code != 0 {
		t.Errorf("it exits with %d", code)
	}
}

// The reader of a log goes away: the process does not.
func testGoneReader(t *testing.T, bin string) {
	w := newSandbox(t, bin)
	r, stdout, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s := w.start(stdout, nil, "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0")
	stdout.Close()
	gateway, admin := s.ready()
	r.Close()
	w.ask(gateway, 80)
	w.until("it is counted", func() bool { return w.metric(admin, `tidegate_log_write_errors_total{log="access"}`) > 0 })
	w.ask(gateway, 80)
	s.signal(syscall.SIGTERM)
	if code := s.end(); code != 0 {
		t.Errorf("it exits with %d", code)
	}
}

// A full disk is told of once, and counted.
func testFullDisk(t *testing.T, bin string) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has a /dev/full")
	}
	w := newSandbox(t, bin)
	s := w.start(nil, nil, "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0", "--log.access=/dev/full")
	gateway, admin := s.ready()
	const told = "the access log cannot be written: lines that do not fit its buffer are dropped and counted"
	w.ask(gateway, 80)
	if line := s.await(1, told); !strings.Contains(line["err"].(string), "no space left") {
		t.Errorf("it warns %v", line)
	}
	w.until("it is tried again", func() bool { return w.metric(admin, `tidegate_log_write_errors_total{log="access"}`) > 3 })
	w.ask(gateway, 80)
	if n := len(s.lines(told)); n != 1 {
		t.Errorf("it warns %d times", n)
	}
	s.signal(syscall.SIGTERM)
	if code := s.end(); code != 0 {
		t.Errorf("it exits with %d", code)
	}
}

// As logrotate does: the file is renamed and the process told. Every request has its
// line in one of them, those on the way through a hand-over and the end included.
func testRotation(t *testing.T, bin string) {
	w := newSandbox(t, bin)
	s := w.start(nil, nil, "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0", "--log.access=access.log")
	gateway, _ := s.ready()
	const told = "reloading: logs are opened again; rules, lists, certificates, tokens and users are read again"
	sent := 0
	for i := range 5 {
		w.ask(gateway, 160)
		sent += 160
		if i < 4 {
			if err := os.Rename(filepath.Join(w.dir, "access.log"), filepath.Join(w.dir, fmt.Sprintf("access.log.%d", i))); err != nil {
				t.Fatal(err)
			}
			s.signal(syscall.SIGHUP)
			s.await(i+1, told)
			w.until("there is a new file", func() bool { _, err := os.Stat(filepath.Join(w.dir, "access.log")); return err == nil })
		}
	}
	s.signal(syscall.SIGUSR2)
	s.await(2, "serving")
	if code := s.end(); code != 0 {
		t.Errorf("the predecessor exits with %d", code)
	}
	w.ask(gateway, 160)
	sent += 160
	successor := int(s.await(1, upgradedLine)["successor"].(float64))
	if err := syscall.Kill(successor, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	w.until("the successor has ended", func() bool { return syscall.Kill(successor, 0) != nil })
	files, _ := filepath.Glob(filepath.Join(w.dir, "access.log*"))
	lines := 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			lines++
			if !json.Valid([]byte(line)) {
				t.Errorf("%s: no JSON: %.100q", name, line)
			}
		}
	}
	if lines != sent || len(files) != 5 {
		t.Errorf("%d lines of %d requests in %v", lines, sent, files)
	}
}

// A request that the end cuts off has its line, too.
func testCutOffIsLogged(t *testing.T, bin string) {
	reached := make(chan bool, 1)
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		reached <- true
		<-r.Context().Done() // nobody is answered
	}))
	t.Cleanup(upstream.Close)
	w := newSandbox(t, bin)
	s := w.start(nil, nil, "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0", "--upstreams="+upstream.URL, "--drain=50ms", "--log.access=access.log")
	gateway, _ := s.ready()
	go func() {
		if res, err := once.Get(gateway + "/slow"); err == nil { // or it was cut off before its head
			res.Body.Close()
		}
	}()
	<-reached
	s.signal(syscall.SIGTERM)
	if code := s.end(); code != 0 {
		t.Errorf("it exits with %d", code)
	}
	text, err := os.ReadFile(filepath.Join(w.dir, "access.log"))
	if err != nil || !strings.Contains(string(text), `"path":"/slow"`) {
		t.Errorf("the log has %q, %v", text, err)
	}
}
