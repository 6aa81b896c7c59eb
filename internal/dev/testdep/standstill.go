package testdep

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// Standstill runs f, and returns the longest time for which this process did not get to
// run meanwhile, or one of the servers while it had something to do.
func Standstill(f func(), servers ...*RedisServer) (longest time.Duration) {
	const nap = time.Millisecond
	over, done := make(chan struct{}), make(chan struct{})
	last := time.Now() // not when the goroutine begins, which a standstill may put off
	queued := make([]time.Duration, len(servers))
	for i, s := range servers {
		queued[i] = s.queued()
	}
	go func() {
		defer close(done)
		for running := true; running; {
			select {
			case <-over:
				running = false
			case <-time.After(nap):
			}
			now := time.Now()
			longest = max(longest, now.Sub(last)-nap)
			last = now
			for i, s := range servers {
				was := queued[i]
				queued[i] = s.queued()
				longest = max(longest, queued[i]-was)
			}
		}
	}()
	f()
	close(over)
	<-done
	return longest
}

// attempts is how often a test is run at least, and disturbedFor for how long, before a machine
// is called too busy. A suite of many packages keeps it busy for seconds, hardly for minutes.
const (
	attempts     = 10
	disturbedFor = 3 * time.Minute
)

// Undisturbed runs a test that has to act within a time, and runs it again if it fails
// although this process stood still for pause or longer meanwhile, or a server that it
// needs did. Many short standstills may take as long as one that is seen, so a test fails
// once two attempts without a standstill have failed.
//
// A test that fails in every attempt fails in the end, however disturbed they were: it may be
// the code under test that keeps the machine busy.
//
// It is for what virtual time cannot show, such as TLS, other processes and the kernel.
func Undisturbed(t *testing.T, pause time.Duration, test func(t testing.TB), servers ...*RedisServer) {
	t.Helper()
	undisturbed(t, pause, disturbedFor, test, servers)
}

func undisturbed(t *testing.T, pause, tryFor time.Duration, test func(t testing.TB), servers []*RedisServer) {
	t.Helper()
	quiet := 0 // attempts that failed without a standstill
	for n, end := 1, time.Now().Add(tryFor); n <= attempts || time.Now().Before(end); n++ {
		a := &attempt{TB: t}
		stood := Standstill(func() { a.run(test) }, servers...)
		log := strings.Join(a.log, "\n")
		switch {
		case a.skipped:
			t.Skip(log)
		case !a.Failed():
			if log != "" {
				t.Log(log)
			}
			return
		case stood < pause:
			if quiet++; quiet == 2 {
				t.Fatalf("attempt %d failed, the second without a standstill of %s:\n%s", n, pause, log)
			}
		}
		t.Logf("attempt %d failed, in which this process or a server stood still for %s:\n%s", n, stood, log)
		awaitCalm(pause, end, servers)
	}
	t.Fatalf("every attempt failed, all but %d while this process or a server stood still for %s: this machine is too busy to tell, or what is tested keeps it busy", quiet, pause)
}

// awaitCalm returns when nothing has stood still for pause during a moment, at end, or after a
// while: on a machine that is never calm the next attempt may still be undisturbed.
func awaitCalm(pause time.Duration, end time.Time, servers []*RedisServer) {
	const moment, while = 200 * time.Millisecond, 5 * time.Second
	for start := time.Now(); time.Now().Before(end) && time.Since(start) < while; {
		if Standstill(func() { time.Sleep(moment) }, servers...) < pause {
			return
		}
	}
}

// attempt is the testing.TB of one attempt. Its failures are its own.
type attempt struct {
	testing.TB
	ctx context.Context

	mu       sync.Mutex
	log      []string
	failed   bool
	skipped  bool
	cleanups []func()
}

// run runs the test in a goroutine of its own, which FailNow can end.
func (a *attempt) run(test func(t testing.TB)) {
	ctx, cancel := context.WithCancel(a.TB.Context())
	a.ctx = ctx
	a.apart(func() { test(a) })
	cancel()
	for {
		a.mu.Lock()
		last := len(a.cleanups) - 1
		if last < 0 {
			a.mu.Unlock()
			return
		}
		f := a.cleanups[last]
		a.cleanups = a.cleanups[:last]
		a.mu.Unlock()
		a.apart(f)
	}
}

func (a *attempt) apart(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

func (a *attempt) note(text string, failed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, file, line, _ := runtime.Caller(2)
	a.log = append(a.log, fmt.Sprintf("%s:%d: %s", file[strings.LastIndexByte(file, '/')+1:], line, strings.TrimSuffix(text, "\n")))
	a.failed = a.failed || failed
}

func (a *attempt) Cleanup(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cleanups = append(a.cleanups, f)
}

func (a *attempt) Failed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failed
}

func (a *attempt) Fail() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed = true
}

func (a *attempt) Context() context.Context  { return a.ctx }
func (a *attempt) FailNow()                  { a.Fail(); runtime.Goexit() }
func (a *attempt) Log(v ...any)              { a.note(fmt.Sprintln(v...), false) }
func (a *attempt) Logf(f string, v ...any)   { a.note(fmt.Sprintf(f, v...), false) }
func (a *attempt) Error(v ...any)            { a.note(fmt.Sprintln(v...), true) }
func (a *attempt) Errorf(f string, v ...any) { a.note(fmt.Sprintf(f, v...), true) }
func (a *attempt) Fatal(v ...any)            { a.note(fmt.Sprintln(v...), true); runtime.Goexit() }
func (a *attempt) Fatalf(f string, v ...any) { a.note(fmt.Sprintf(f, v...), true); runtime.Goexit() }
func (a *attempt) SkipNow()                  { a.skipped = true; runtime.Goexit() }
func (a *attempt) Skip(v ...any)             { a.note(fmt.Sprintln(v...), false); a.SkipNow() }
func (a *attempt) Skipf(f string, v ...any)  { a.note(fmt.Sprintf(f, v...), false); a.SkipNow() }
func (a *attempt) Skipped() bool             { return a.skipped }
