package grpclimit_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/adapters/grpclimit"
	"tidegate.dev/tidegate/adapters/grpclimit/internal/calltest"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/store/memory"
)

// deaf takes any error for the end of the stream.
type deaf struct{ calltest.Service }

func (d *deaf) StreamingInputCall(stream grpc.ClientStreamingServer[pb.StreamingInputCallRequest, pb.StreamingInputCallResponse]) error {
	n := int32(0)
	for ; n < 100; n++ {
		if _, err := stream.Recv(); err != nil {
			break
		}
	}
	if _, err := stream.Recv(); err == nil || errors.Is(err, io.EOF) {
		return errors.New("a stream goes on after a refused message")
	}
	return stream.SendAndClose(&pb.StreamingInputCallResponse{AggregatedPayloadSize: n})
}

// A stream whose message was refused fails, even if its handler takes that for success.
func TestRefusedMessageCannotBeOverlooked(t *testing.T) {
	o := grpclimit.Options{Messages: true}
	lim := tidegate.New(memory.New(), tidegate.PerHour(3))
	server := grpc.NewServer(o.Limit(lim, httplimit.IP()).ServerOptions()...)
	pb.RegisterTestServiceServer(server, new(deaf))
	client := calltest.Dial(t, calltest.Listen(t, server))
	stream, err := client.StreamingInputCall(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		_ = stream.Send(&pb.StreamingInputCallRequest{})
	}
	_, err = stream.CloseAndRecv()
	if a := (calltest.Answer{Err: err, Trailer: stream.Trailer()}); a.Code() != codes.ResourceExhausted || a.Pushback() != "-1" {
		t.Errorf("%v, trailer %v", err, a.Trailer)
	}
}

// Messages that may wait are slowed down to the rate of the limit, and none is lost.
func TestMessageWait(t *testing.T) {
	const events, period = 1, 50 * time.Millisecond
	limit := tidegate.MustLimit(tidegate.Spec{Events: events, Period: period, Algorithm: tidegate.TokenBucket})
	o := grpclimit.Options{Messages: true, MessageWait: time.Hour}
	client := calltest.Dial(t, calltest.Serve(t, new(calltest.Service), o.Limit(tidegate.New(memory.New(), limit), httplimit.IP()).ServerOptions()...))
	start := time.Now()
	stream, err := client.StreamingInputCall(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const messages = 6
	for range messages {
		if err := stream.Send(&pb.StreamingInputCallRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := stream.CloseAndRecv()
	if err != nil || got.GetAggregatedPayloadSize() != messages {
		t.Fatalf("%v, %v", got, err)
	}
	if took, least := time.Since(start), messages*period; took < least { // the stream itself had the first event
		t.Errorf("%d messages took %s, want %s or more", messages, took, least)
	}
}

// A message that waits leaves with its stream, and one that would wait too long is refused.
func TestMessageWaitEnds(t *testing.T) {
	decided := make(chan tidegate.Decision, 10)
	o := grpclimit.Options{
		Messages: true, MessageWait: 2 * time.Hour,
		OnDecision: func(_ context.Context, _ string, d tidegate.Decision) { decided <- d },
	}
	limit := func(period time.Duration) *tidegate.Limiter {
		return tidegate.New(memory.New(), tidegate.MustLimit(tidegate.Spec{Events: 1, Period: period}))
	}
	send := func(ctx context.Context, period time.Duration) grpc.BidiStreamingClient[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse] {
		client := calltest.Dial(t, calltest.Serve(t, new(calltest.Service), o.Limit(limit(period), httplimit.IP()).ServerOptions()...))
		stream, err := client.FullDuplexCall(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(&pb.StreamingOutputCallRequest{}); err != nil {
			t.Fatal(err)
		}
		if first, second := <-decided, <-decided; !first.OK || second.OK {
			t.Fatalf("%+v, %+v", first, second)
		}
		return stream
	}
	ctx, cancel := context.WithCancel(t.Context())
	stream := send(ctx, time.Hour)
	cancel()
	if _, err := stream.Recv(); (&calltest.Answer{Err: err}).Code() != codes.Canceled {
		t.Errorf("after it was cancelled: %v", err)
	}
	if _, err := send(t.Context(), 3*time.Hour).Recv(); (&calltest.Answer{Err: err}).Code() != codes.ResourceExhausted {
		t.Errorf("a wait of three hours: %v", err)
	}
}

// Headers of handlers and of limits arrive together, however the handler sends its own.
func TestHandlersSetHeaders(t *testing.T) {
	own := metadata.Pairs("x-own", "1")
	lim := tidegate.New(memory.New(), tidegate.PerHour(100))
	for name, set := range map[string]func(context.Context) error{
		"set":  func(ctx context.Context) error { return grpc.SetHeader(ctx, own) },
		"send": func(ctx context.Context) error { return grpc.SendHeader(ctx, own) },
	} {
		client := calltest.Dial(t, calltest.Serve(t, &calltest.Service{Do: set}, grpclimit.Limit(lim, httplimit.IP()).ServerOptions()...))
		for _, kind := range calltest.Kinds {
			a := kind.Call(t.Context(), client)
			if told := len(a.Header["ratelimit"]) + len(a.Trailer["ratelimit"]); a.Err != nil || len(a.Header["x-own"]) != 1 || told != 1 {
				t.Errorf("%s, %s: %v, header %v, trailer %v", name, kind.Name, a.Err, a.Header, a.Trailer)
			}
		}
	}
}

// A handler that panics gives its slot back.
func TestPanicFreesSlot(t *testing.T) {
	recovered := errors.New("recovered")
	unary := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
		defer func() {
			if recover() != nil {
				err = recovered
			}
		}()
		return handler(ctx, req)
	}
	stream := func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
		defer func() {
			if recover() != nil {
				err = recovered
			}
		}()
		return handler(srv, ss)
	}
	lim := tidegate.New(memory.New(), tidegate.MustLimit(tidegate.Spec{Events: 1, Period: time.Hour, Algorithm: tidegate.Concurrency}))
	service := &calltest.Service{Do: func(context.Context) error { panic("told to") }}
	o := append([]grpc.ServerOption{grpc.ChainUnaryInterceptor(unary), grpc.ChainStreamInterceptor(stream)}, grpclimit.Limit(lim, httplimit.IP()).ServerOptions()...)
	client := calltest.Dial(t, calltest.Serve(t, service, o...))
	for _, kind := range calltest.Kinds {
		for range 3 {
			if a := kind.Call(t.Context(), client); a.Code() != codes.Unknown {
				t.Errorf("%s: %v", kind.Name, a.Err)
			}
		}
	}
}
