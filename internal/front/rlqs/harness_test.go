package rlqs_test

import (
	"fmt"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"

	"tidegate.dev/tidegate/internal/front/rlqs"
	"tidegate.dev/tidegate/internal/front/rlqs/ledger"
	"tidegate.dev/tidegate/rules/envoy"
)

// shop has a token bucket of 1,000 per second.
func shop(burst int) string {
	return fmt.Sprintf("domain: shop\ndescriptors:\n  - { key: bucket, rate_limit: { unit: second, requests_per_unit: 1000, tidegate: { algorithm: token_bucket, burst: %d } } }\n", burst)
}

var (
	short  = ledger.Times{TTL: 300 * time.Millisecond, Delivery: 100 * time.Millisecond}
	bucket = map[string]string{"bucket": "all"}
)

// domains loads a configuration.
func domains(t testing.TB, config string) func() *envoy.Set {
	t.Helper()
	set, err := envoy.Load([]envoy.File{{Name: "config.yaml", Text: []byte(config)}}, envoy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return func() *envoy.Set { return set }
}

// serve starts a server on a socket.
func serve(t testing.TB, o rlqs.Options) (s *rlqs.Server, addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s = rlqs.New(o)
	g := grpc.NewServer()
	s.Register(g)
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		g.Stop()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return s, l.Addr().String()
}
