package grpclimit_test

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/adapters/grpclimit"
	"tidegate.dev/tidegate/adapters/grpclimit/internal/calltest"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/store/memory"
)

func doNothing(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	return handler(ctx, req)
}

func doNothingStream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	return handler(srv, ss)
}

// interceptors are those to compare; nothing is the one that does nothing.
func interceptors(b *testing.B) map[string]struct {
	unary  grpc.UnaryServerInterceptor
	stream grpc.StreamServerInterceptor
} {
	const text = `
version: 1
identify: { user: metadata x-user }
rules:
  - { name: calls, match: POST /grpc.testing.TestService/, per: user, limits: { rate: 1000000/second, algorithm: token_bucket } }
`
	const closed = "version: 1\nrules:\n  - { name: one, per: everyone, limits: 1/week }"
	limit := tidegate.MustLimit(tidegate.Spec{Events: 1_000_000, Period: 1e9, Algorithm: tidegate.TokenBucket})
	byLimit := grpclimit.Limit(tidegate.New(memory.New(), limit), httplimit.IP())
	byGate := grpclimit.Gate(calltest.Gate(b, text, memory.New()))
	messages := grpclimit.Options{Messages: true}.Limit(tidegate.New(memory.New(), limit), httplimit.IP())
	refusing := grpclimit.Gate(calltest.Gate(b, closed, memory.New()))
	return map[string]struct {
		unary  grpc.UnaryServerInterceptor
		stream grpc.StreamServerInterceptor
	}{
		"nothing":  {doNothing, doNothingStream},
		"limit":    {byLimit.Unary, byLimit.Stream},
		"gate":     {byGate.Unary, byGate.Stream},
		"messages": {messages.Unary, messages.Stream},
		"refusing": {refusing.Unary, refusing.Stream},
	}
}

// BenchmarkUnary measures whole calls over loopback, several at a time on one connection.
func BenchmarkUnary(b *testing.B) {
	for name, i := range interceptors(b) {
		b.Run(name, func(b *testing.B) {
			client := calltest.Dial(b, calltest.Serve(b, new(calltest.Service), grpc.UnaryInterceptor(i.unary)))
			b.ReportAllocs()
			b.RunParallel(func(calls *testing.PB) {
				for calls.Next() {
					_ = calltest.Unary(b.Context(), client)
				}
			})
		})
	}
}

// BenchmarkMessage measures a message and its answer on a stream over loopback.
func BenchmarkMessage(b *testing.B) {
	for name, i := range interceptors(b) {
		if name == "refusing" {
			continue
		}
		b.Run(name, func(b *testing.B) {
			client := calltest.Dial(b, calltest.Serve(b, new(calltest.Service), grpc.StreamInterceptor(i.stream)))
			stream, err := client.FullDuplexCall(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := stream.Send(&pb.StreamingOutputCallRequest{}); err != nil {
					b.Fatal(err)
				}
				if _, err := stream.Recv(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// incoming returns the context of a call as a server has it.
func incoming(ctx context.Context) context.Context {
	ctx = peer.NewContext(ctx, &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 40000}})
	ctx = grpc.NewContextWithServerTransportStream(ctx, new(transportStream))
	return metadata.NewIncomingContext(ctx, metadata.Pairs(":authority", "localhost", "content-type", "application/grpc", "user-agent", "grpc-go/1.85.0", "x-user", "alice"))
}

// transportStream takes metadata, and sends none.
type transportStream struct{}

func (*transportStream) Method() string               { return "" }
func (*transportStream) SetHeader(metadata.MD) error  { return nil }
func (*transportStream) SendHeader(metadata.MD) error { return nil }
func (*transportStream) SetTrailer(metadata.MD) error { return nil }

// BenchmarkInterceptor measures the interceptor alone.
func BenchmarkInterceptor(b *testing.B) {
	info := &grpc.UnaryServerInfo{FullMethod: pb.TestService_UnaryCall_FullMethodName}
	ctx := incoming(b.Context())
	handler := func(context.Context, any) (any, error) { return nil, nil }
	for name, i := range interceptors(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = i.unary(ctx, nil, info, handler)
			}
		})
	}
}
