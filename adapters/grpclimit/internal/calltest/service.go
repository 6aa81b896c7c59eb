// Package calltest has a gRPC service, calls of every kind and the suite that package grpclimit
// passes with every store, for tests. Start with [Run].
package calltest

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
)

// Service answers calls of every kind.
type Service struct {
	pb.UnimplementedTestServiceServer
	// Handled is how many calls have reached a handler.
	Handled atomic.Int64
	// Do is called by every handler first, which returns its error; nil does nothing.
	Do func(ctx context.Context) error
}

func (s *Service) begin(ctx context.Context) error {
	s.Handled.Add(1)
	if s.Do == nil {
		return nil
	}
	return s.Do(ctx)
}

// UnaryCall implements [pb.TestServiceServer].
func (s *Service) UnaryCall(ctx context.Context, _ *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	return &pb.SimpleResponse{}, s.begin(ctx)
}

// StreamingOutputCall sends three messages.
func (s *Service) StreamingOutputCall(_ *pb.StreamingOutputCallRequest, stream grpc.ServerStreamingServer[pb.StreamingOutputCallResponse]) error {
	if err := s.begin(stream.Context()); err != nil {
		return err
	}
	for range 3 {
		if err := stream.Send(&pb.StreamingOutputCallResponse{}); err != nil {
			return err
		}
	}
	return nil
}

// StreamingInputCall returns the number of messages as AggregatedPayloadSize.
func (s *Service) StreamingInputCall(stream grpc.ClientStreamingServer[pb.StreamingInputCallRequest, pb.StreamingInputCallResponse]) error {
	if err := s.begin(stream.Context()); err != nil {
		return err
	}
	for n := int32(0); ; n++ {
		_, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return stream.SendAndClose(&pb.StreamingInputCallResponse{AggregatedPayloadSize: n})
		}
		if err != nil {
			return err
		}
	}
}

// FullDuplexCall answers each message with one.
func (s *Service) FullDuplexCall(stream grpc.BidiStreamingServer[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse]) error {
	if err := s.begin(stream.Context()); err != nil {
		return err
	}
	for {
		_, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.Send(&pb.StreamingOutputCallResponse{}); err != nil {
			return err
		}
	}
}

// Serve starts a server of s, and returns its address.
func Serve(t testing.TB, s *Service, o ...grpc.ServerOption) string {
	t.Helper()
	server := grpc.NewServer(o...)
	pb.RegisterTestServiceServer(server, s)
	return Listen(t, server)
}

// Listen serves server on a port of its own until the test ends, and returns its address.
func Listen(t testing.TB, server *grpc.Server) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

// Insecure is for connections within a test.
var Insecure = grpc.WithTransportCredentials(insecure.NewCredentials())

// Dial returns a client of the server at addr.
func Dial(t testing.TB, addr string, o ...grpc.DialOption) pb.TestServiceClient {
	t.Helper()
	conn, err := grpc.NewClient(addr, append([]grpc.DialOption{Insecure}, o...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return pb.NewTestServiceClient(conn)
}
