package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/testdep"
)

// nodes is how many gateways share a Redis.
const nodes = 3

// stage is where a row is played: Redis, what stands before it, the gateways, the
// upstream. It is also the test that internal/testdep starts servers for: what fails
// ends the row, and what was started ends with it.
type stage struct {
	testing.TB // none; what is not written here is not called

	ctx      context.Context
	dir      string
	cleanups []func()
	servers  []*testdep.RedisServer // masters first
	proxies  []*proxy               // one per node, if any
	fleet    []*node
	upstream string
}

// failure is what Fatal panics with.
type failure struct{ error }

func (s *stage) Helper()                      {}
func (s *stage) Name() string                 { return "chaos" }
func (s *stage) Cleanup(f func())             { s.cleanups = append(s.cleanups, f) }
func (s *stage) Logf(string, ...any)          {}
func (s *stage) Fatal(args ...any)            { panic(failure{fmt.Errorf("%s", fmt.Sprint(args...))}) }
func (s *stage) Fatalf(f string, args ...any) { panic(failure{fmt.Errorf(f, args...)}) }
func (s *stage) Skipf(f string, args ...any)  { s.Fatalf(f, args...) }

// must ends the row on an error.
func (s *stage) must(err error) {
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stage) close() {
	for i := len(s.cleanups) - 1; i >= 0; i-- {
		s.cleanups[i]()
	}
}

// onStage builds the stage for r, and plays.
func onStage(ctx context.Context, r row, play func(*stage)) (err error) {
	s := &stage{ctx: ctx}
	defer func() {
		if p := recover(); p != nil {
			f, ok := p.(failure)
			if !ok {
				panic(p)
			}
			err = f.error
		}
	}()
	defer s.close()
	s.dir, err = os.MkdirTemp("", "chaos")
	s.must(err)
	s.Cleanup(func() { _ = os.RemoveAll(s.dir) })
	s.startUpstream()
	urls := r.site(s)
	for i := range nodes {
		s.fleet = append(s.fleet, s.startNode(i, urls[i%len(urls)], cmp.Or(r.rules, rulesText)))
	}
	for _, n := range s.fleet {
		s.must(n.await(ctx))
	}
	play(s)
	return nil
}

// startUpstream lets idle connections go soon, so that goroutines can be counted.
func (s *stage) startUpstream() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	s.must(err)
	server := &http.Server{
		IdleTimeout: 300 * time.Millisecond,
		Handler:     http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }),
	}
	go func() { _ = server.Serve(l) }()
	s.Cleanup(func() { _ = server.Close() })
	s.upstream = "http://" + l.Addr().String()
}

// pause waits, unless everything is to end.
func (s *stage) pause(d time.Duration) {
	select {
	case <-s.ctx.Done():
		s.must(context.Cause(s.ctx))
	case <-time.After(d):
	}
}
