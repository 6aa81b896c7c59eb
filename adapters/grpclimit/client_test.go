package grpclimit_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/adapters/grpclimit"
	"tidegate.dev/tidegate/adapters/grpclimit/internal/calltest"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/store/memory"
)

// A client without a retry policy of gRPC waits as long as it is told, and succeeds.
func TestClientWaits(t *testing.T) {
	for _, kind := range calltest.Kinds {
		t.Run(kind.Name, func(t *testing.T) {
			attempts, service := new(calltest.Attempts), new(calltest.Service)
			limit := tidegate.MustLimit(tidegate.Spec{Events: 1, Period: 300 * time.Millisecond, Algorithm: tidegate.TokenBucket})
			o := grpclimit.Options{OnDecision: attempts.Note}
			addr := calltest.Serve(t, service, o.Limit(tidegate.New(memory.New(), limit), httplimit.IP()).ServerOptions()...)
			client := calltest.Dial(t, addr, grpclimit.NewClient(grpclimit.ClientOptions{}).DialOptions()...)
			attempts.Check(t, service, func() calltest.Answer { return kind.Call(t.Context(), client) })
		})
	}
}

// A client waits as well for what an HTTP server before the service tells it, as Tidegate's
// gateway does.
func TestClientWaitsForHTTPMiddleware(t *testing.T) {
	service := new(calltest.Service)
	server := grpc.NewServer()
	pb.RegisterTestServiceServer(server, service)
	limit := tidegate.MustLimit(tidegate.Spec{Events: 1, Period: time.Second, Algorithm: tidegate.TokenBucket})
	front := httptest.NewUnstartedServer(httplimit.Limit(tidegate.New(memory.New(), limit), httplimit.IP())(server))
	front.EnableHTTP2 = true
	front.StartTLS()
	defer front.Close()
	var waits atomic.Int64
	o := grpclimit.ClientOptions{OnWait: func(_ context.Context, _ string, wait time.Duration) {
		if waits.Add(1); wait < time.Second {
			t.Errorf("waits for %s only", wait)
		}
	}}
	roots := x509.NewCertPool()
	roots.AddCert(front.Certificate())
	secure := grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots, ServerName: "example.com"}))
	client := calltest.Dial(t, front.Listener.Addr().String(), append(grpclimit.NewClient(o).DialOptions(), secure)...)
	for round := 0; round < 10 && waits.Load() == 0; round++ {
		for _, kind := range calltest.Kinds {
			if a := kind.Call(t.Context(), client); a.Err != nil {
				t.Fatalf("%s: %v, trailer %v", kind.Name, a.Err, a.Trailer)
			}
		}
	}
	if waits.Load() == 0 {
		t.Error("no call was refused: the test shows nothing")
	}
}

// Every message of a stream that was refused at first arrives once, whether the client receives
// meanwhile or not.
func TestClientSendsAgain(t *testing.T) {
	const messages = 200
	limit := tidegate.MustLimit(tidegate.Spec{Events: 1, Period: 300 * time.Millisecond, Algorithm: tidegate.TokenBucket})
	server := grpclimit.Limit(tidegate.New(memory.New(), limit), httplimit.IP())
	var waits atomic.Int64
	o := grpclimit.ClientOptions{OnWait: func(context.Context, string, time.Duration) { waits.Add(1) }}
	client := calltest.Dial(t, calltest.Serve(t, new(calltest.Service), server.ServerOptions()...), grpclimit.NewClient(o).DialOptions()...)
	upload := func() {
		stream, err := client.StreamingInputCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range messages {
			if err := stream.Send(&pb.StreamingInputCallRequest{Payload: &pb.Payload{Body: []byte{byte(i)}}}); err != nil {
				t.Fatalf("message %d: %v", i, err)
			}
		}
		if got, err := stream.CloseAndRecv(); err != nil || got.GetAggregatedPayloadSize() != messages {
			t.Errorf("%v messages arrived, %v", got.GetAggregatedPayloadSize(), err)
		}
	}
	talk := func() {
		stream, err := client.FullDuplexCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var both sync.WaitGroup
		both.Go(func() {
			for i := range messages {
				if err := stream.Send(&pb.StreamingOutputCallRequest{}); err != nil {
					t.Errorf("message %d: %v", i, err)
					return
				}
			}
			_ = stream.CloseSend()
		})
		received := 0
		for err == nil {
			if _, err = stream.Recv(); err == nil {
				received++
			}
		}
		both.Wait()
		if !errors.Is(err, io.EOF) || received != messages {
			t.Errorf("%d messages came back, %v", received, err)
		}
	}
	head := func() {
		stream, err := client.StreamingOutputCall(t.Context(), &pb.StreamingOutputCallRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if md, err := stream.Header(); err != nil || len(md["ratelimit"]) != 1 {
			t.Errorf("header %v, %v", md, err)
		}
	}
	for round := 0; round < 10 && waits.Load() < 6; round++ {
		upload()
		talk()
		head()
	}
	if waits.Load() == 0 {
		t.Error("no stream was refused: the test shows nothing")
	}
}

// greets sends its headers before it receives anything.
type greets struct{ calltest.Service }

func (g *greets) FullDuplexCall(stream grpc.BidiStreamingServer[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse]) error {
	if err := stream.SendHeader(metadata.Pairs("x-greeting", "hello")); err != nil {
		return err
	}
	return g.Service.FullDuplexCall(stream)
}

// Who waits for the headers of a stream that was refused at first gets them, also while somebody
// else receives, to whom nothing is sent before.
func TestClientWaitsForHeaders(t *testing.T) {
	limit := tidegate.MustLimit(tidegate.Spec{Events: 1, Period: 300 * time.Millisecond, Algorithm: tidegate.TokenBucket})
	limits := grpclimit.Limit(tidegate.New(memory.New(), limit), httplimit.IP())
	server := grpc.NewServer(limits.ServerOptions()...)
	pb.RegisterTestServiceServer(server, new(greets))
	var waits atomic.Int64
	o := grpclimit.ClientOptions{OnWait: func(context.Context, string, time.Duration) { waits.Add(1) }}
	client := calltest.Dial(t, calltest.Listen(t, server), grpclimit.NewClient(o).DialOptions()...)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // in case that it hangs
	defer cancel()
	for round := 0; round < 10 && waits.Load() < 4; round++ {
		stream, err := client.FullDuplexCall(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var sender sync.WaitGroup
		sender.Go(func() {
			if md, err := stream.Header(); err != nil || len(md["x-greeting"]) != 1 {
				t.Errorf("header %v, %v", md, err)
			}
			if err := stream.Send(&pb.StreamingOutputCallRequest{}); err != nil {
				t.Error(err)
			}
			_ = stream.CloseSend()
		})
		received := 0
		for err == nil {
			if _, err = stream.Recv(); err == nil {
				received++
			}
		}
		sender.Wait()
		if !errors.Is(err, io.EOF) || received != 1 {
			t.Fatalf("%d messages came back, %v", received, err)
		}
	}
	if waits.Load() == 0 {
		t.Error("no stream was refused: the test shows nothing")
	}
}

// A stream of which too much was sent cannot be repeated, and is refused like any other.
func TestClientKeepsOnlySoMuch(t *testing.T) {
	server := grpclimit.Options{}.Gate(calltest.Gate(t, `
version: 1
rules:
  - { name: one, per: everyone, limits: { rate: 1/minute, algorithm: token_bucket } }
`, memory.New()))
	client := calltest.Dial(t, calltest.Serve(t, new(calltest.Service), server.ServerOptions()...),
		grpclimit.NewClient(grpclimit.ClientOptions{MaxWait: time.Hour}).DialOptions()...)
	calltest.Unary(t.Context(), client)
	stream, err := client.StreamingInputCall(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	large := &pb.StreamingInputCallRequest{Payload: &pb.Payload{Body: make([]byte, 300<<10)}}
	if err := stream.Send(large); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if _, err := stream.CloseAndRecv(); (&calltest.Answer{Err: err}).Code() != codes.ResourceExhausted {
		t.Errorf("got %v", err)
	}
}

// What is final, too far off, beyond the deadline or not to be repeated is returned at once.
func TestClientDoesNotWait(t *testing.T) {
	const minute = "{ name: one, per: everyone, limits: { rate: 1/minute, algorithm: token_bucket } }"
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	f := func(ctx context.Context, rule string, o grpclimit.ClientOptions) {
		t.Helper()
		for _, kind := range calltest.Kinds {
			attempts := new(calltest.Attempts)
			server := grpclimit.Options{OnDecision: attempts.Note}.Gate(calltest.Gate(t, "version: 1\nrules:\n  - "+rule, memory.New()))
			o.OnWait = func(_ context.Context, _ string, wait time.Duration) {
				t.Errorf("%s: %s: waits for %s", rule, kind.Name, wait)
			}
			client := calltest.Dial(t, calltest.Serve(t, new(calltest.Service), server.ServerOptions()...), grpclimit.NewClient(o).DialOptions()...)
			kind.Call(ctx, client)
			if a := kind.Call(ctx, client); a.Code() != codes.ResourceExhausted && a.Code() != codes.PermissionDenied {
				t.Errorf("%s: %s: %v", rule, kind.Name, a.Err)
			}
		}
	}
	f(t.Context(), "{ name: closed, deny: true }", grpclimit.ClientOptions{})
	f(t.Context(), "{ name: yearly, per: everyone, quota: { amount: 1/year } }", grpclimit.ClientOptions{MaxWait: 1 << 62})
	f(t.Context(), minute, grpclimit.ClientOptions{MaxWait: time.Second})
	f(soon, minute, grpclimit.ClientOptions{})
	f(t.Context(), minute, grpclimit.ClientOptions{MaxAttempts: 1})
	f(t.Context(), minute, grpclimit.ClientOptions{Methods: grpclimit.Idempotent})
}

// A client that is cancelled while it waits returns that.
func TestClientIsCancelled(t *testing.T) {
	server := grpclimit.Limit(tidegate.New(memory.New(), tidegate.PerMinute(1)), httplimit.IP())
	addr := calltest.Serve(t, new(calltest.Service), server.ServerOptions()...)
	calltest.Unary(t.Context(), calltest.Dial(t, addr))
	for _, kind := range calltest.Kinds {
		ctx, cancel := context.WithCancel(t.Context())
		o := grpclimit.ClientOptions{OnWait: func(context.Context, string, time.Duration) { cancel() }}
		if a := kind.Call(ctx, calltest.Dial(t, addr, grpclimit.NewClient(o).DialOptions()...)); a.Code() != codes.Canceled {
			t.Errorf("%s: %v", kind.Name, a.Err)
		}
	}
}

// However many calls are refused, few of them are repeated.
func TestClientHasABudget(t *testing.T) {
	server := grpclimit.Limit(tidegate.New(memory.New(), tidegate.PerMinute(1)), httplimit.IP())
	addr := calltest.Serve(t, new(calltest.Service), server.ServerOptions()...)
	ctx, cancel := context.WithCancel(t.Context())
	var waits atomic.Int64
	o := grpclimit.ClientOptions{Budget: 0.1, OnWait: func(context.Context, string, time.Duration) { waits.Add(1) }}
	client := calltest.Dial(t, addr, grpclimit.NewClient(o).DialOptions()...)
	calltest.Unary(t.Context(), client)
	const calls = 100
	codeOf := make(chan codes.Code, calls)
	for range calls {
		go func() {
			a := calltest.Unary(ctx, client)
			codeOf <- a.Code()
		}()
	}
	const most = 10 + calls/10
	for range calls - most {
		if code := <-codeOf; code != codes.ResourceExhausted {
			t.Errorf("got %s", code)
		}
	}
	cancel() // the others, which wait
	for range most {
		<-codeOf
	}
	if n := waits.Load(); n < 10 || n > most {
		t.Errorf("%d of %d calls were to be repeated, want 10 to %d", n, calls, most)
	}
}

// The options of a program that can only be mistakes panic when the program starts.
func TestMistakes(t *testing.T) {
	lim := tidegate.New(memory.New(), tidegate.PerHour(1))
	slots := tidegate.New(memory.New(), tidegate.MustLimit(tidegate.Spec{Events: 1, Period: time.Hour, Algorithm: tidegate.Concurrency}))
	for want, f := range map[string]func(){
		"limiter is nil":         func() { grpclimit.Limit(nil, httplimit.IP()) },
		"key function is nil":    func() { grpclimit.Limit(lim, nil) },
		"gate is nil":            func() { grpclimit.Gate(nil) },
		"must not be negative":   func() { grpclimit.Options{MaxPushback: -1}.Limit(lim, httplimit.IP()) },
		"no message would wait":  func() { grpclimit.Options{MessageWait: 1}.Limit(lim, httplimit.IP()) },
		"messages hold no slots": func() { grpclimit.Options{Messages: true}.Limit(slots, httplimit.IP()) },
		"RetryJitter":            func() { grpclimit.Options{RetryJitter: 2}.Limit(lim, httplimit.IP()) },
		"option is negative":     func() { grpclimit.NewClient(grpclimit.ClientOptions{Jitter: -1}) },
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, want) {
					t.Errorf("panic %q, want %q", text, want)
				}
			}()
			f()
		}()
	}
}
