package rlqs_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"tidegate.dev/tidegate/internal/dev/quotafilter"
)

// proxy is an Envoy with one bucket, on a connection of its own.
type proxy struct {
	testing.TB
	began  time.Time
	dial   func(testing.TB) *grpc.ClientConn
	late   time.Duration // by up to that it acts later than it is told
	every  time.Duration // between two reports
	demand func(now time.Duration) float64

	mu       sync.Mutex
	bucket   quotafilter.Bucket
	has      quotafilter.TokenBucket
	until    time.Duration
	admitted []time.Duration
	asked    int
	cancel   context.CancelFunc // ends the stream
	conn     *grpc.ClientConn
	all      sync.WaitGroup
}

// dialTCP connects to an address without TLS.
func dialTCP(addr string) func(testing.TB) *grpc.ClientConn {
	return func(t testing.TB) *grpc.ClientConn {
		conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
}

func (p *proxy) now() time.Duration { return time.Since(p.began) }

// connect opens a stream, and ends the one before.
func (p *proxy) connect(domain string, id map[string]string) {
	p.disconnect()
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel, p.conn = cancel, p.dial(p.TB)
	stream, err := pb.NewRateLimitQuotaServiceClient(p.conn).StreamRateLimitQuotas(ctx)
	if err != nil {
		p.Error(err)
		return
	}
	p.all.Go(func() { p.receive(stream) })
	p.all.Go(func() { p.report(ctx, stream, domain, id) })
}

// disconnect ends the stream with its connection, as when the process is killed.
func (p *proxy) disconnect() {
	if p.cancel != nil {
		p.conn.Close()
		p.cancel()
		p.all.Wait()
		p.cancel = nil
	}
}

// receive does what it is told, in order.
func (p *proxy) receive(stream grpc.BidiStreamingClient[pb.RateLimitQuotaUsageReports, pb.RateLimitQuotaResponse]) {
	for {
		in, err := stream.Recv()
		if err != nil {
			return
		}
		if p.late > 0 {
			time.Sleep(rand.N(p.late))
		}
		for _, a := range in.BucketAction {
			assigned := a.GetQuotaAssignmentAction()
			s := strategyOf(assigned.GetRateLimitStrategy())
			p.mu.Lock()
			now := p.now()
			p.bucket.Assign(now, s, assigned.GetAssignmentTimeToLive().AsDuration())
			p.has, p.until = s, now+assigned.GetAssignmentTimeToLive().AsDuration()
			p.mu.Unlock()
		}
	}
}

func strategyOf(s *typev3.RateLimitStrategy) quotafilter.TokenBucket {
	b := s.GetTokenBucket()
	return quotafilter.TokenBucket{MaxTokens: b.GetMaxTokens(), TokensPerFill: b.GetTokensPerFill().GetValue(), FillInterval: b.GetFillInterval().AsDuration()}
}

// report reports at once, and then now and then.
func (p *proxy) report(ctx context.Context, stream grpc.BidiStreamingClient[pb.RateLimitQuotaUsageReports, pb.RateLimitQuotaResponse], domain string, id map[string]string) {
	for {
		p.mu.Lock()
		allowed, denied := p.bucket.Report()
		p.mu.Unlock()
		if stream.Send(usage(domain, id, allowed, denied)) != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(p.every):
		}
	}
}

// usage is a report. Envoy tells elapsed times in whole seconds: here it is none.
func usage(domain string, id map[string]string, allowed, denied uint64) *pb.RateLimitQuotaUsageReports {
	return &pb.RateLimitQuotaUsageReports{Domain: domain, BucketQuotaUsages: []*pb.RateLimitQuotaUsageReports_BucketQuotaUsage{{
		BucketId: &pb.BucketId{Bucket: id}, NumRequestsAllowed: allowed, NumRequestsDenied: denied,
	}}}
}

// work has clients ask, until ctx ends.
func (p *proxy) work(ctx context.Context) {
	some, last := 0.0, p.now()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := p.now()
		some += p.demand(now) * (now - last).Seconds()
		last = now
		p.mu.Lock()
		for ; some >= 1; some-- {
			p.asked++
			// The instant is that of the decision, as the bucket's is.
			if at := p.now(); p.bucket.Admit(at) {
				p.admitted = append(p.admitted, at)
			}
		}
		p.mu.Unlock()
	}
}

// perSecond is the rate that it has.
func (p *proxy) perSecond() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now() >= p.until || p.has.TokensPerFill == 0 {
		return 0
	}
	return float64(p.has.TokensPerFill) / p.has.FillInterval.Seconds()
}
