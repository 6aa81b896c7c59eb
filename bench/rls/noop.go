package main

import (
	"context"
	"net"
	"runtime/debug"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"tidegate.dev/tidegate/internal/front/rls"
)

// noop answers every descriptor with a status, as a service does that limits, and decides
// nothing: what gRPC itself takes.
type noop struct {
	pb.UnimplementedRateLimitServiceServer
}

func (noop) ShouldRateLimit(_ context.Context, r *pb.RateLimitRequest) (*pb.RateLimitResponse, error) {
	res := &pb.RateLimitResponse{OverallCode: pb.RateLimitResponse_OK, Statuses: make([]*pb.RateLimitResponse_DescriptorStatus, 0, len(r.Descriptors))}
	for range r.Descriptors {
		res.Statuses = append(res.Statuses, &pb.RateLimitResponse_DescriptorStatus{
			Code:               pb.RateLimitResponse_OK,
			CurrentLimit:       &pb.RateLimitResponse_RateLimit{RequestsPerUnit: 1_000_000, Unit: pb.RateLimitResponse_RateLimit_DAY},
			LimitRemaining:     999_999,
			DurationUntilReset: &durationpb.Duration{Seconds: 1800},
		})
	}
	return res, nil
}

// garbage is GOGC of tidegate serve.
const garbage = 400

// serveNoop listens on address until ctx ends.
func serveNoop(ctx context.Context, address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	debug.SetGCPercent(garbage)
	server := grpc.NewServer(rls.ServerOptions(-1)...)
	pb.RegisterRateLimitServiceServer(server, noop{})
	defer context.AfterFunc(ctx, server.Stop)()
	return server.Serve(l)
}
