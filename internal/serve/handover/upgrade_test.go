//go:build unix

package handover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// envRole makes this binary, started again by an upgrade, a successor.
const envRole = "TIDEGATE_TEST_SUCCESSOR"

func TestMain(m *testing.M) {
	if role := os.Getenv(envRole); role != "" {
		if err := succeed(role); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// succeed behaves as its role says.
func succeed(role string) error {
	ctx := context.Background()
	h, err := Inherit()
	if err != nil {
		return err
	}
	switch role {
	case "fails":
		return fmt.Errorf("the configuration is wrong")
	case "sleeps":
		select {}
	case "talks":
		return say(h.predecessor.to, "hello")
	}
	l, err := h.Listen("gateway", "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	snapshot, err := h.Await(ctx)
	if err != nil {
		return err
	}
	counters, err := os.ReadFile(snapshot)
	switch {
	case err != nil:
		return err
	case role == "dies":
		return fmt.Errorf("out of memory")
	case role == "hangs":
		select {}
	}
	ctx, stop := context.WithTimeout(ctx, time.Minute) // the test ends it before
	defer stop()
	return Serve(ctx, h, Options{Endpoints: []Endpoint{speaker(l, "successor with "+string(counters), stop)}, Log: quiet()})
}

// speaker is an endpoint where one hears the same to every question; hold, if there is
// one, before the answer to /slow.
func speaker(l net.Listener, words string, hold func()) Endpoint {
	return Endpoint{Name: "gateway", Listener: l, Open: func() (Server, error) {
		return &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" && hold != nil {
				hold()
			}
			io.WriteString(w, words)
		})}, nil
	}}
}

// output can be read while it is written.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// patient is far longer than anything takes.
const patient = time.Minute

func (o *output) await(t *testing.T, n int, words string) {
	t.Helper()
	if !testdep.Await(patient, func() bool { return strings.Count(o.String(), words) >= n }) {
		t.Fatalf("it does not say %q %d times:\n%s", words, n, o)
	}
}

// scene is a predecessor in this process, to be asked to hand over to a successor
// of some role.
type scene struct {
	url     string
	log     output
	upgrade chan os.Signal
	stop    context.CancelFunc
	ended   chan error
	started chan bool // gets one when /slow is asked for
	release chan bool // lets it be answered
}

func play(t *testing.T, role string, stepTimeout time.Duration, snapshot func(string) error) *scene {
	t.Helper()
	return playOn(t, listen(t), role, stepTimeout, snapshot)
}

func playOn(t *testing.T, l net.Listener, role string, stepTimeout time.Duration, snapshot func(string) error) *scene {
	t.Helper()
	t.Setenv(envRole, role)
	s := &scene{
		url: "http://" + l.Addr().String(), upgrade: make(chan os.Signal, 1), ended: make(chan error, 1),
		started: make(chan bool), release: make(chan bool),
	}
	ctx, stop := context.WithCancel(t.Context())
	s.stop = stop
	if snapshot == nil {
		snapshot = func(file string) error { return os.WriteFile(file, []byte("counters"), 0o600) }
	}
	hold := func() { s.started <- true; <-s.release }
	go func() {
		s.ended <- serve(ctx, &Heir{}, Options{
			Endpoints: []Endpoint{speaker(l, "predecessor", hold)}, HandOver: snapshot, Drain: 5 * time.Second,
			Upgrade: s.upgrade, Log: slog.New(slog.NewTextHandler(&s.log, nil)),
		}, stepTimeout)
	}()
	return s
}

func (s *scene) ask(path string) string {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Get(s.url + path)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (s *scene) end(t *testing.T) {
	t.Helper()
	select {
	case err := <-s.ended:
		if err != nil {
			t.Errorf("ends with %v", err)
		}
	case <-time.After(patient):
		t.Fatalf("does not end:\n%s", &s.log)
	}
}

func TestHandOver(t *testing.T) {
	s := play(t, "takes over", patient, nil)
	if got := s.ask("/"); got != "predecessor" {
		t.Fatalf("before: %s", got)
	}
	slow := make(chan string)
	go func() { slow <- s.ask("/slow") }()
	<-s.started
	s.upgrade <- syscall.SIGUSR2
	s.log.await(t, 1, "upgraded")
	if got := s.ask("/"); got != "successor with counters" {
		t.Errorf("after: %s", got)
	}
	close(s.release)
	if got := <-slow; got != "predecessor" {
		t.Errorf("a request in hand: %s", got)
	}
	s.ask("/slow") // ends the successor
	s.end(t)
}

func TestPredecessorGoesOn(t *testing.T) {
	goesOn := func(t *testing.T, role string, stepTimeout time.Duration, snapshot func(string) error) (log string) {
		t.Helper()
		s := play(t, role, stepTimeout, snapshot)
		for i := range 2 { // a failed upgrade does not hinder the next
			s.upgrade <- syscall.SIGUSR2
			s.log.await(t, i+1, "not upgraded")
			if got := s.ask("/"); got != "predecessor" {
				t.Errorf("after a failed upgrade: %s", got)
			}
		}
		s.stop()
		s.end(t)
		if strings.Contains(s.log.String(), "upgraded: a successor") {
			t.Errorf("somebody took over:\n%s", &s.log)
		}
		return s.log.String()
	}
	f := func(role string, stepTimeout time.Duration, snapshot func(string) error, why string) {
		t.Run(role, func(t *testing.T) {
			if log := goesOn(t, role, stepTimeout, snapshot); !strings.Contains(log, why) {
				t.Errorf("it does not say %q:\n%s", why, log)
			}
		})
	}
	f("fails", patient, nil, "exit status 1")
	f("talks", patient, nil, "said \\\"hello\\\"")
	f("sleeps", 200*time.Millisecond, nil, "not prepared within 200ms")
	f("dies", patient, nil, "exit status 1")
	f("takes over", patient, func(string) error { return fmt.Errorf("the disk is full") }, "the disk is full")
	t.Run("hangs", func(t *testing.T) {
		for step := 2 * time.Second; ; step *= 3 { // in which it gets to where it hangs, or it has to have more
			log := goesOn(t, "hangs", step, nil)
			if strings.Contains(log, "not serving within "+step.String()) {
				return
			}
			if step > patient/2 || !strings.Contains(log, "not prepared within "+step.String()) {
				t.Fatalf("it does not say that it hangs:\n%s", log)
			}
		}
	})
}

// A process that could not hand over goes on with what it handed over, and with nothing else: what it
// still has is not opened again. What takes time to end, it ends while it still answers.
func TestResumedAfterHandOverAlone(t *testing.T) {
	f := func(name, role, temp string, handOver error, want string) {
		t.Run(name, func(t *testing.T) {
			t.Setenv(envRole, role)
			t.Setenv("TMPDIR", temp)
			var d diary
			l := listen(t)
			upgrade := make(chan os.Signal, 1)
			var log output
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				ended <- serve(ctx, &Heir{}, Options{
					Endpoints: []Endpoint{speaker(l, "predecessor", nil)},
					Leaving:   func() { d.note("%s answers", (&scene{url: "http://" + l.Addr().String()}).ask("/")) },
					HandOver: func(file string) error {
						d.note("handed over")
						return errors.Join(handOver, os.WriteFile(file, nil, 0o600))
					},
					Resumed: func() { d.note("resumed") },
					Upgrade: upgrade, Log: slog.New(slog.NewTextHandler(&log, nil)),
				}, patient)
			}()
			upgrade <- syscall.SIGUSR2
			log.await(t, 1, "not upgraded")
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if got := strings.Join(d.lines, ", "); got != want {
				t.Errorf("%s, want %s\n%s", got, want, &log)
			}
		})
	}
	missing, there := filepath.Join(t.TempDir(), "none"), t.TempDir()
	f("not prepared", "fails", there, nil, "")
	f("no folder for temporary files", "takes over", missing, nil, "")
	f("a full disk", "takes over", there, errors.New("the disk is full"), "predecessor answers, handed over, resumed")
	f("dead after that", "dies", there, nil, "predecessor answers, handed over, resumed")
}

// Somebody who wants the process to end does not wait for an upgrade.
func TestStopDuringUpgrade(t *testing.T) {
	s := play(t, "sleeps", time.Minute, nil)
	s.ask("/")
	s.upgrade <- syscall.SIGUSR2
	s.log.await(t, 1, "a successor is started")
	s.stop()
	s.end(t)
	if _, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://")); err == nil {
		t.Error("somebody still listens")
	}
}

// When the predecessor is gone, the sockets are the successor's.
func TestAwaitWithoutPredecessor(t *testing.T) {
	h, theirs := heirOf(t)
	theirs.from.Close()
	theirs.to.Close()
	if file, err := h.Await(t.Context()); file != "" || err != nil {
		t.Errorf("got %q, %v", file, err)
	}
	h.serving()
	if h.Follows() {
		t.Error("it still follows somebody")
	}
}

func TestAwaitIsInterrupted(t *testing.T) {
	h, theirs := heirOf(t)
	defer theirs.to.Close()
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := h.Await(ctx); err != context.DeadlineExceeded {
		t.Errorf("error %v", err)
	}
}

func TestAwaitNonsense(t *testing.T) {
	h, theirs := heirOf(t)
	if err := say(theirs.to, "take", "this"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Await(t.Context()); err == nil || !strings.Contains(err.Error(), `"take"`) {
		t.Errorf("error %v", err)
	}
}

// heirOf is one with a predecessor, of which it returns the other ends.
func heirOf(t *testing.T) (*Heir, *predecessor) {
	t.Helper()
	theirFrom, ourTo, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ourFrom, theirTo, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, f := range []*os.File{theirFrom, ourTo, ourFrom, theirTo} {
			f.Close()
		}
	})
	return &Heir{predecessor: &predecessor{ourFrom, ourTo}}, &predecessor{theirFrom, theirTo}
}

// A listener whose socket was passed on can still be closed: with a blocking
// socket, Accept would sit there until a connection comes, and swallow it.
func TestSharedSocketStaysNonblocking(t *testing.T) {
	l := listen(t)
	f, err := share(l)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.Fd() // what starting a process does with it
	accepted := make(chan error)
	go acceptOnce(l, accepted)
	testdep.Eventually(t, "Accept waits", acceptWaits)
	go l.Close()
	select {
	case <-accepted:
	case <-time.After(30 * time.Second):
		t.Error("Accept does not end")
	}
}

func acceptOnce(l net.Listener, accepted chan<- error) {
	_, err := l.Accept()
	accepted <- err
}

// acceptWaits reports whether acceptOnce waits for a connection: for the runtime's poller, or in the kernel.
func acceptWaits() bool {
	stacks := make([]byte, 1<<20)
	for _, one := range strings.Split(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		state, calls, _ := strings.Cut(one, "\n")
		if strings.Contains(calls, "handover.acceptOnce(") && strings.Contains(calls, ".Accept(") {
			return strings.Contains(state, "[IO wait") || strings.Contains(state, "[syscall")
		}
	}
	return false
}

// Sockets of a Unix path stay in place while they are passed on.
func TestPassedSocketKeepsItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	o := &opened{Endpoint: Endpoint{Listener: l}}
	o.own(false)
	l.Close()
	if _, err := os.Lstat(path); err != nil {
		t.Error(err)
	}
}

// The file of a Unix socket outlives successors that fail, at any step, and goes with the process.
func TestSocketFileAfterFailedUpgrades(t *testing.T) {
	for _, role := range []string{"fails", "dies"} {
		t.Run(role, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s")
			l, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			s := playOn(t, l, role, patient, nil)
			for i := range 2 {
				s.upgrade <- syscall.SIGUSR2
				s.log.await(t, i+1, "not upgraded")
				conn, err := net.Dial("unix", path)
				if err != nil {
					t.Fatal(err)
				}
				conn.Close()
			}
			s.stop()
			s.end(t)
			if _, err := os.Lstat(path); err == nil {
				t.Error("it leaves its socket behind")
			}
		})
	}
}
