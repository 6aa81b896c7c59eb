package grpclimit_test

import (
	"context"
	"io"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"tidegate.dev/tidegate/adapters/grpclimit"
)

// attempt is a stream whose steps a test puts in order, which those of a connection cannot be.
type attempt struct {
	grpc.ClientStream
	send func() error
	recv func() error
}

func (a *attempt) Header() (metadata.MD, error) { return nil, nil }
func (a *attempt) Trailer() metadata.MD         { return metadata.Pairs("grpc-retry-pushback-ms", "1") }
func (a *attempt) SendMsg(any) error            { return a.send() }
func (a *attempt) RecvMsg(any) error            { return a.recv() }

// A message that is on its way in an attempt that is refused is sent again in the next one. Its
// sender is not told that the stream has ended, however late it learns of the first attempt.
func TestClientSendsAgainWhileSending(t *testing.T) {
	sending, late, receiving := make(chan bool), make(chan bool), make(chan bool)
	sentAgain, received := 0, 0
	attempts := []*attempt{
		{
			send: func() error { close(sending); <-late; return io.EOF },
			recv: func() error { return status.Error(codes.ResourceExhausted, "refused") },
		},
		{
			send: func() error { sentAgain++; return nil },
			recv: func() error {
				if received++; received == 2 {
					close(receiving)
					<-t.Context().Done()
				}
				return nil
			},
		},
	}
	open := func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
		next := attempts[0]
		attempts = attempts[1:]
		return next, nil
	}
	stream, err := grpclimit.NewClient(grpclimit.ClientOptions{}).Stream(t.Context(), &grpc.StreamDesc{}, nil, "/a/B", open)
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan error, 1)
	go func() { sent <- stream.SendMsg(&pb.StreamingOutputCallRequest{}) }()
	<-sending
	if err := stream.RecvMsg(nil); err != nil || sentAgain != 1 {
		t.Fatalf("sent again %d times, %v", sentAgain, err)
	}
	go func() { _ = stream.RecvMsg(nil) }()
	<-receiving
	close(late)
	if err := <-sent; err != nil {
		t.Errorf("the sender is told %v", err)
	}
}
