package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/bench/internal/daemon"
	"tidegate.dev/tidegate/bench/internal/process"
	"tidegate.dev/tidegate/bench/internal/report"
	"tidegate.dev/tidegate/bench/internal/rig"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/queue"
	"tidegate.dev/tidegate/internal/front/rls"
	"tidegate.dev/tidegate/internal/telemetry"
	"tidegate.dev/tidegate/internal/telemetry/offenders"
	"tidegate.dev/tidegate/rules/envoy"
	"tidegate.dev/tidegate/store/memory"
)

const (
	childWord = "-child"
	domain    = "bench"
	inFlight  = 32

	domainText = "domain: bench\ndescriptors:\n  - key: user\n    rate_limit: { unit: day, requests_per_unit: 1000000 }\n"
)

// playChild is main of the processes that this program starts of itself: a rate limit service,
// watched or not.
func playChild(ctx context.Context, args []string) error {
	if len(args) != 2 || args[0] != "on" && args[0] != "off" {
		return fmt.Errorf("no such child: %q", args)
	}
	debug.SetGCPercent(400) // as tidegate serve
	l, err := net.Listen("tcp", args[1])
	if err != nil {
		return err
	}
	server, err := newRLS(args[0] == "on")
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	return server.Serve(l)
}

// newRLS returns a service on counters in memory that is watched as tidegate serve does, or not at
// all.
func newRLS(watched bool) (*rls.Server, error) {
	set, err := envoy.Load([]envoy.File{{Name: "bench.yaml", Text: []byte(domainText)}}, envoy.Options{})
	if err != nil {
		return nil, err
	}
	counters := memory.New()
	o := rls.Options{Domains: func() *envoy.Set { return set }, Near: counters, Store: queue.New(chain.Adapt(counters))}
	if watched {
		metrics := telemetry.New(prometheus.NewRegistry(), "memory")
		door := metrics.Door("rls")
		lists := offenders.New(offenders.Options{})
		o.Counted = door.ObserveMany
		o.Each = func(key string, d *tidegate.Decision, _ bool) { lists.One(key, d) }
	}
	return rls.New(o), nil
}

// service is a child that is asked.
type service struct {
	name  string
	child *daemon.Server
	conn  *grpc.ClientConn

	rates, micros []float64
}

// measureRLS compares services with everything on and with nothing on.
func measureRLS(ctx context.Context, rounds int, heat time.Duration, s *summary) error {
	dir, err := os.MkdirTemp("", "tidegate-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	off, on := &service{name: "off"}, &service{name: "on"}
	for round := range rounds {
		if round%5 == 0 {
			rig.Progress("rls: round %d of %d", round, rounds)
		}
		order := []*service{off, on}
		if round%2 == 1 {
			order = []*service{on, off}
		}
		forget := func() {
			for _, one := range order {
				one.rates, one.micros = one.rates[:round], one.micros[:round]
			}
		}
		if err := process.Undisturbed(ctx, "rls", func() error { return playServices(ctx, dir, order, heat) }, forget); err != nil {
			return err
		}
	}
	s.rls = report.MedianRatio(off.micros, on.micros)
	t := report.Table{
		Title: "The rate limit service for Envoy, watched and not",
		Note:  fmt.Sprintf("%d calls in flight of one descriptor each, %d users, medians of %d rounds. On against off is calls per second of the server's CPU time: the load generator, whose cores are the same, takes as much.", inFlight, users, rounds),
		Head:  []string{"", "calls/s", "CPU of the server, µs/call"},
	}
	for _, one := range []*service{off, on} {
		t.Add(one.name, report.Thousands(int64(report.Median(one.rates))), fmt.Sprintf("%.1f", report.Median(one.micros)))
	}
	t.Add("on against off", "", fmt.Sprintf("%.3fx", s.rls))
	s.tables = append(s.tables, t)
	return nil
}

// slices is how many times each service has a quarter of a heat, in turns: the machine is faster in
// one second than in the next. Linux tells the CPU time of a process in steps of 10 ms.
const slices = 8

// playServices starts services, asks each for a heat and ends them. Each round has new processes:
// where things lie in the memory of one is worth more than what is measured.
func playServices(ctx context.Context, dir string, order []*service, heat time.Duration) error {
	for _, one := range order {
		if err := one.start(ctx, dir); err != nil {
			return err
		}
		defer one.stop()
	}
	for _, one := range order { // keys are new, and sampling adapts
		if _, _, err := one.play(ctx, heat/4); err != nil {
			return err
		}
	}
	heats := make([]serviceHeat, len(order))
	for i, one := range order {
		var err error
		if heats[i].began, err = process.TreeTime(one.child.PID); err != nil {
			return err
		}
	}
	for range slices {
		for i, one := range order {
			calls, took, err := one.play(ctx, heat/4)
			if err != nil {
				return err
			}
			heats[i].calls, heats[i].took = heats[i].calls+calls, heats[i].took+took
		}
	}
	for i, one := range order {
		ended, err := process.TreeTime(one.child.PID)
		if err != nil {
			return err
		}
		calls := float64(heats[i].calls)
		one.rates = append(one.rates, calls/heats[i].took.Seconds())
		one.micros = append(one.micros, float64((ended-heats[i].began).Microseconds())/calls)
	}
	return nil
}

// serviceHeat is what became of a service's slices. It idles while the other has its turn.
type serviceHeat struct {
	began time.Duration // the CPU time of the service before
	calls int64
	took  time.Duration
}

func (one *service) start(ctx context.Context, dir string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program to run it again: %w", err)
	}
	address, err := daemon.FreeAddress()
	if err != nil {
		return err
	}
	one.child, err = daemon.Start("the service, "+one.name, dir, address, nil, self, childWord, one.name, address)
	if err != nil {
		return err
	}
	one.conn, err = grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		one.child.Stop()
		return err
	}
	err = one.child.Await(ctx, func(ctx context.Context) error {
		_, err := pb.NewRateLimitServiceClient(one.conn).ShouldRateLimit(ctx, question(1))
		return err
	})
	if err != nil {
		one.stop()
	}
	return err
}

func (one *service) stop() {
	_ = one.conn.Close()
	one.child.Stop()
}

func question(n int) *pb.RateLimitRequest {
	return &pb.RateLimitRequest{Domain: domain, Descriptors: []*common.RateLimitDescriptor{{
		Entries: []*common.RateLimitDescriptor_Entry{{Key: "user", Value: fmt.Sprintf("user-%08d", n)}},
	}}}
}

// play asks for a while, and returns how many calls were answered in how long.
func (one *service) play(ctx context.Context, lasts time.Duration) (int64, time.Duration, error) {
	client := pb.NewRateLimitServiceClient(one.conn)
	questions := make([]*pb.RateLimitRequest, 1<<10)
	for i := range questions {
		questions[i] = question(rand.IntN(users))
	}
	var calls atomic.Int64
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	start := time.Now()
	for i := range inFlight {
		all.Go(func() {
			for n := i * 31; time.Since(start) < lasts; n++ {
				out, err := client.ShouldRateLimit(ctx, questions[n%len(questions)])
				if err == nil && (out.OverallCode != pb.RateLimitResponse_OK || len(out.Statuses) != 1) {
					err = fmt.Errorf("answered %v, so that the comparison is void", out)
				}
				if err != nil {
					failed.Store(&err)
					return
				}
				calls.Add(1)
			}
		})
	}
	all.Wait()
	took := time.Since(start)
	if err := failed.Load(); err != nil {
		return 0, 0, *err
	}
	return calls.Load(), took, nil
}
