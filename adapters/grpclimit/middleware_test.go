package grpclimit_test

import (
	"net"
	"net/http"
	"testing"
	"time"

	"google.golang.org/grpc"
	pb "google.golang.org/grpc/interop/grpc_testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/adapters/grpclimit"
	"tidegate.dev/tidegate/adapters/grpclimit/internal/calltest"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/store/memory"
)

// Clients obey the pushback of the middleware of package httplimit as they do that of grpclimit: with a
// retry policy by themselves, and with the client interceptor.
func TestPushbackOfMiddleware(t *testing.T) {
	const policy = `{"methodConfig": [{"name": [{"service": "grpc.testing.TestService"}], "retryPolicy": {
		"maxAttempts": 5, "initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1,
		"retryableStatusCodes": ["RESOURCE_EXHAUSTED"]}}]}`
	for name, dial := range map[string][]grpc.DialOption{
		"policy":      {grpc.WithDefaultServiceConfig(policy)},
		"interceptor": grpclimit.NewClient(grpclimit.ClientOptions{}).DialOptions(),
	} {
		for _, kind := range calltest.Kinds {
			t.Run(name+", "+kind.Name, func(t *testing.T) {
				attempts, service := new(calltest.Attempts), new(calltest.Service)
				limit := tidegate.MustLimit(tidegate.Spec{Events: 1, Period: 300 * time.Millisecond, Algorithm: tidegate.TokenBucket})
				o := httplimit.Options{OnDecision: func(r *http.Request, d tidegate.Decision) { attempts.Note(r.Context(), r.URL.Path, d) }}
				calls := grpc.NewServer()
				pb.RegisterTestServiceServer(calls, service)
				addr := serveHTTP(t, o.Limit(tidegate.New(memory.New(), limit), grpclimit.Method)(calls))
				attempts.Check(t, service, func() calltest.Answer {
					return kind.Call(t.Context(), calltest.Dial(t, addr, dial...))
				})
			})
		}
	}
}

// serveHTTP serves h over HTTP/2 without TLS, and returns its address.
func serveHTTP(t *testing.T, h http.Handler) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: h, Protocols: new(http.Protocols)}
	server.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return listener.Addr().String()
}
