package main

import (
	"context"
	"net"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"tidegate.dev/tidegate/bench/internal/report"
	"tidegate.dev/tidegate/bench/internal/rig"
)

// Scripts read the last line: its form is a promise.
func TestSummaryLine(t *testing.T) {
	s := summary{rls: 0.931, rls20: 0.8, envoy: 2.6, envoyCPU: 0.41}
	const want = "bench-rls: rls 0.93x rls20 0.80x envoy 2.6x envoy-cpu 0.4x"
	var out strings.Builder
	if err := rig.Conclude(&out, true, s, s.missed()); err != nil || out.String() != want+"\n" {
		t.Errorf("got  %s, %v\nwant %s", &out, err, want)
	}
}

func TestMissedNamesTheBar(t *testing.T) {
	f := func(s summary, want string) {
		t.Helper()
		var out strings.Builder
		err := rig.Conclude(&out, true, s, s.missed())
		if (err != nil) != (want != "") || !regexp.MustCompile(`^`+want+`bench-rls: .*\n$`).MatchString(out.String()) {
			t.Errorf("%+v: %v\n%s", s, err, &out)
		}
	}
	f(summary{0.9, 0.75, 2, 0.5}, "")
	f(summary{0.89, 0.75, 2, 0.5}, `missed: rls is 0\.89x, the bar is at least 0\.9x\n`)
	f(summary{0.9, 0.74, 2, 0.5}, `missed: rls20 is 0\.74x, the bar is at least 0\.75x\n`)
	f(summary{0.9, 0.75, 1.99, 0.5}, `missed: envoy is 1\.99x, the bar is at least 2x\n`)
	f(summary{0.9, 0.75, 2, 0.51}, `missed: envoy-cpu is 0\.51x, the bar is at most 0\.5x\n`)
	f(summary{}, `(missed: .*\n){3}`) // nothing was measured
}

// The ratio is that of the median round, not of the medians.
func TestSummaryAndTable(t *testing.T) {
	var es entrants
	for i, race := range []string{memory, memory20, onRedis} {
		rival := &entrant{name: "rival", race: race, rates: []float64{10, 20, 40}, micros: []float64{10, 10, 10}}
		es = append(es, rival, &entrant{name: "ours", race: race, rival: rival, rates: []float64{10, 40 * float64(i+1), 40}, micros: []float64{4, 1, 5}, p50: []float64{1}, p99: []float64{1}})
	}
	if s := es.summary(); s != (summary{1, 1, 1, 0.4}) {
		t.Errorf("%+v", s)
	}
	r := report.New(time.Now())
	r.Tables = []report.Table{es.table(time.Second)}
	var out strings.Builder
	r.WriteText(&out)
	for _, want := range []string{`rival +20 +10\.0`, `ours +40 +1\.00x +4\.0 +0\.40x +1\.00 +1\.00 +0`} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("%q is not in\n%s", want, &out)
		}
	}
}

func TestQuestions(t *testing.T) {
	for _, n := range []int{1, most} {
		all, err := questions(n)
		if err != nil || len(all) != draws {
			t.Fatalf("%d questions, %v", len(all), err)
		}
		var r pb.RateLimitRequest
		if err := proto.Unmarshal(all[0], &r); err != nil || r.Domain != domain || len(r.Descriptors) != n {
			t.Errorf("%v, %v", &r, err)
		}
	}
}

func TestAnswersAreLookedAt(t *testing.T) {
	f := func(res *pb.RateLimitResponse, ok bool, statuses int) {
		t.Helper()
		message, err := proto.Marshal(res)
		if err != nil {
			t.Fatal(err)
		}
		var a answer
		if err := a.read(message); err != nil || a.ok != ok || a.statuses != statuses {
			t.Errorf("%v: ok is %t, %d statuses, %v", res, a.ok, a.statuses, err)
		}
		if len(message) > 2 && a.read(message[:len(message)-1]) == nil {
			t.Errorf("%v: half of it is taken for whole", res)
		}
	}
	all, err := (noop{}).ShouldRateLimit(t.Context(), &pb.RateLimitRequest{Descriptors: make([]*common.RateLimitDescriptor, most)})
	if err != nil {
		t.Fatal(err)
	}
	f(all, true, most)
	all.OverallCode = pb.RateLimitResponse_OVER_LIMIT
	f(all, false, most)
	f(&pb.RateLimitResponse{}, false, 0)
}

// sour refuses every other call.
type sour struct {
	noop
	calls atomic.Int64
}

func (s *sour) ShouldRateLimit(ctx context.Context, r *pb.RateLimitRequest) (*pb.RateLimitResponse, error) {
	res, err := s.noop.ShouldRateLimit(ctx, r)
	if s.calls.Add(1)%2 == 0 {
		res.OverallCode = pb.RateLimitResponse_OVER_LIMIT
	}
	return res, err
}

// The load generator counts calls and wrong answers, and stops when it is told to.
func TestDrive(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, service := grpc.NewServer(), &sour{}
	pb.RegisterRateLimitServiceServer(server, service)
	go func() { _ = server.Serve(l) }()
	defer server.Stop()
	for _, descriptors := range []int{1, most} {
		got, err := drive(t.Context(), l.Addr().String(), 1, descriptors, 100*time.Millisecond)
		if err != nil || got.Calls == 0 || got.Wrong == 0 || got.First == "" || got.Took < 100*time.Millisecond || got.P99 < got.P50 || got.P50 <= 0 {
			t.Errorf("%d: %+v, %v", descriptors, got, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := drive(ctx, l.Addr().String(), 1, 1, time.Hour); err == nil {
		t.Error("it goes on when it is told to stop")
	}
}
