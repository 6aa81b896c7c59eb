package rls

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/front/question"
)

// Server answers Envoy. Use [New]. Its methods may be called from any number of goroutines.
type Server struct {
	pb.UnimplementedRateLimitServiceServer
	o        Options
	grpc     *grpc.Server
	health   *health.Server
	draining atomic.Bool
	ending   chan struct{} // closed when streams have to end
	end      sync.Once
	streams  atomic.Int64 // of health and reflection

	alarms    chain.Alarms
	above     nextLimits
	calls     sync.Pool // of *call
	exchanges sync.Pool // of *exchange
	vectors   sync.Pool // of *[]tidegate.Check
	questions sync.Pool // of *question.Question
}

// New returns a Server.
func New(o Options) *Server {
	o.complete()
	s := &Server{o: o, health: health.NewServer(), ending: make(chan struct{})}
	s.calls.New = func() any { return new(call) }
	s.exchanges.New = func() any { return &exchange{server: s} }
	s.vectors.New = func() any { return new([]tidegate.Check) }
	s.questions.New = func() any { return new(question.Question) }
	s.grpc = grpc.NewServer(append(ServerOptions(o.MaxConnectionAge), grpc.StreamInterceptor(s.stream), grpc.ForceServerCodecV2(newCodec()))...)
	s.grpc.RegisterService(s.serviceDesc(), s)
	healthpb.RegisterHealthServer(s.grpc, s.health)
	for _, name := range healthNames {
		s.health.SetServingStatus(name, healthpb.HealthCheckResponse_SERVING)
	}
	if o.Register != nil {
		o.Register(s.grpc)
	}
	reflection.Register(s.grpc)
	return s
}

// healthNames are what probes ask for: everything, the service, and what envoyproxy/ratelimit
// calls itself.
var healthNames = []string{"", pb.RateLimitService_ServiceDesc.ServiceName, "ratelimit"}

// Serve accepts connections until Shutdown or Close, and returns nil then.
func (s *Server) Serve(l net.Listener) error {
	g := newGuard(mostHeld)
	defer g.close()
	if err := s.grpc.Serve(guardedListener{l, g}); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// Drain makes health checks say NOT_SERVING. Calls are still answered.
func (s *Server) Drain() {
	s.draining.Store(true)
	s.health.Shutdown()
}

// Shutdown tells clients to leave, and returns when calls in flight have their answers. If ctx
// ends before, it closes the connections and returns the error of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	s.Drain()
	ended := make(chan struct{})
	go func() {
		select { // those who watch the health hear of it first
		case <-time.After(streamGrace):
		case <-ctx.Done():
		}
		s.endStreams()
	}()
	go func() {
		s.grpc.GracefulStop()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		s.grpc.Stop()
		<-ended
		return ctx.Err()
	}
}

// Close closes all connections at once.
func (s *Server) Close() error {
	s.Drain()
	s.endStreams()
	s.grpc.Stop()
	return nil
}

// ShouldRateLimit answers a call that is an object already, such as one from JSON. Those over gRPC
// come to handle.
func (s *Server) ShouldRateLimit(ctx context.Context, in *pb.RateLimitRequest) (*pb.RateLimitResponse, error) {
	c, a := s.calls.Get().(*call), new(answer)
	c.read(in)
	if err := s.ask(ctx, c, a); err != nil {
		return nil, err
	}
	c.reset()
	s.calls.Put(c)
	return &a.response, nil
}

// ask answers c in a, and tells observers. After an error the memory of neither is used again:
// what failed may still refer to them.
func (s *Server) ask(ctx context.Context, c *call, a *answer) (err error) {
	defer s.recovered(func(failed error) { err = status.Error(codes.Internal, failed.Error()) })
	now := time.Now()
	if err = c.wrong; err == nil {
		err = s.decideAll(ctx, c, a, now)
	}
	if err == nil {
		s.observe(c)
		if s.o.Compare != nil {
			s.o.Compare.ask(c, c.request(), &a.response)
		}
	}
	if s.o.Stats != nil {
		if err != nil {
			s.o.Stats.Failed()
		}
		s.o.Stats.Answered(time.Since(now))
	}
	return err
}

// decideAll decides about a call, and writes the answer into a.
func (s *Server) decideAll(ctx context.Context, c *call, a *answer, now time.Time) error {
	if err := c.check(); err != nil {
		return err
	}
	if s.o.Far {
		by := chain.NewAnswerBy(ctx, answerBy(ctx, now, s.o.Deadline), &s.alarms)
		defer by.Stop()
		ctx = by
	}
	if domain := s.o.Domains().Domain(c.domain); domain == nil {
		if s.o.Stats != nil {
			s.o.Stats.UnknownDomain()
		}
		if err := s.decideNative(ctx, c); err != nil {
			return err
		}
	} else {
		c.domain = domain.Name() // not in memory of the call: metrics keep it
		if err := c.find(domain); err != nil {
			return err
		}
		if domain.Atomic() {
			s.decideAtomic(ctx, c)
		} else {
			s.decide(ctx, c)
		}
	}
	if err := c.settle(ctx); err != nil {
		return err
	}
	s.answer(a, c, now)
	return nil
}

// answerBy returns the time by which a call has to be answered: by the deadline, or earlier if the
// client waits for less.
func answerBy(ctx context.Context, now time.Time, deadline time.Duration) time.Time {
	if at, ok := ctx.Deadline(); ok {
		// A quarter of its time is for the way.
		deadline = min(deadline, at.Sub(now)/4*3)
	}
	return now.Add(deadline)
}

// settle decides about descriptors that the store has no answer for, and marks those that refuse. It
// returns an error if ctx has ended meanwhile.
func (c *call) settle(ctx context.Context) error {
	for i := range c.descriptors {
		d := &c.descriptors[i]
		if d.err != nil {
			if err := ctx.Err(); err != nil {
				return status.FromContextError(err).Err()
			}
			d.decision.OK, d.decision.Err = failsOpen(d), d.err
			d.over = !d.decision.OK
		}
		d.refused = d.over && (d.rule == nil || !d.rule.Shadow)
	}
	return nil
}

// failsOpen reports whether a descriptor is admitted if the store has no answer for it.
func failsOpen(d *descriptor) bool {
	if d.rule == nil {
		return d.decision.OK
	}
	for _, l := range d.rule.Limits {
		if l.Terms != nil && l.Terms.Handling.OnStoreFailure == tidegate.FailClosed {
			return false
		}
	}
	return true
}

// recovered logs a panic and passes it to tell as an error, so that other calls go on. Defer it.
func (s *Server) recovered(tell func(error)) {
	if v := recover(); v != nil {
		s.o.Log.Error("a panic while a call was answered", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
		tell(errors.New("internal error"))
	}
}
