package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"tidegate.dev/tidegate/bench/internal/rig"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// nodes is how many gateways share a Redis, unless a row says otherwise.
const nodes = 3

// cast is what a stage is built of.
type cast struct {
	// site starts Redis and returns the URLs by which the nodes reach it, one for
	// all or one for each; nil means that the row does all of that itself.
	site  func(*stage) []string
	rules []string // of each node; those of the last hold for more
	nodes int      // 0 means nodes
	// deadline of the store; 0 means deadline. A longer one is for rows that are not about
	// time: a busy machine misses it less often.
	deadline time.Duration
}

// stage is where a row is played: Redis, what stands before it, the gateways, the
// upstream. It is also the test that internal/dev/testdep starts servers for: what fails
// ends the row, and what was started ends with it.
type stage struct {
	testing.TB // nil; testdep calls only the methods that are written here

	ctx      context.Context
	dir      string
	cleanups []func()
	servers  []*testdep.RedisServer // masters first
	proxies  []*proxy               // one per node, if any
	fleet    []*node
	upstream *upstream
	own      *probe // of this process, which runs the load and the proxies
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

// onStage builds the stage, plays, and takes it down.
func onStage(ctx context.Context, c cast, play func(*stage)) (err error) {
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
	s.Cleanup(func() {
		if err := keepLogs(ctx, s.dir); err != nil {
			rig.Progress("the logs are not kept: %v", err)
		}
		_ = os.RemoveAll(s.dir)
	})
	s.upstream, err = newUpstream()
	s.must(err)
	s.Cleanup(s.upstream.close)
	s.startProbe()
	s.start(c)
	play(s)
	return nil
}

// start starts Redis and the nodes, and returns when all are well.
func (s *stage) start(c cast) {
	if c.site == nil {
		return
	}
	urls := c.site(s)
	for i := range cmp.Or(c.nodes, nodes) {
		s.fleet = append(s.fleet, s.startNode(i, urls[i%len(urls)], c.rules[min(i, len(c.rules)-1)], cmp.Or(c.deadline, deadline)))
	}
	for _, n := range s.fleet {
		s.must(n.await(s.ctx, len(s.fleet)))
	}
}

// startProbe measures how long this process is stopped by the machine, too.
func (s *stage) startProbe() {
	s.own = new(probe)
	ctx, stop := context.WithCancel(s.ctx)
	s.Cleanup(stop)
	go s.own.watch(ctx)
	s.own.watchCores(ctx)
}

// pause waits for d, or ends the row if the run is canceled.
func (s *stage) pause(d time.Duration) {
	select {
	case <-s.ctx.Done():
		s.must(context.Cause(s.ctx))
	case <-time.After(d):
	}
}
