package grpclimit_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/adapters/grpclimit"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

// greeter is a service as any other.
type greeter struct {
	pb.UnimplementedTestServiceServer
}

func (greeter) EmptyCall(context.Context, *pb.Empty) (*pb.Empty, error) { return &pb.Empty{}, nil }

// call serves the greeter, calls it three times, and prints what came back.
func call(server *grpc.Server, o ...grpc.DialOption) {
	pb.RegisterTestServiceServer(server, greeter{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	conn, err := grpc.NewClient(listener.Addr().String(), append(o, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	for range 3 {
		_, err := pb.NewTestServiceClient(conn).EmptyCall(context.Background(), &pb.Empty{})
		fmt.Println(status.Code(err))
	}
}

// Two calls a minute from each client address.
func ExampleLimit() {
	lim := tidegate.New(memory.New(), tidegate.PerMinute(2))
	server := grpc.NewServer(grpclimit.Limit(lim, httplimit.IP()).ServerOptions()...)

	call(server)
	// Output:
	// OK
	// OK
	// ResourceExhausted
}

// Rules say who may call what, how often.
func ExampleGate() {
	set, err := rules.Parse("rules.yaml", []byte(`
version: 1
identify: { client: metadata x-api-key }
rules:
  - { name: calls, match: POST /grpc.testing.TestService/, per: client, limits: 2/minute }
`), rules.Config{})
	if err != nil {
		log.Fatal(err) // every mistake, with its line and what to write instead
	}
	gate := tidegate.NewGate(rules.NewLive(set), memory.New())
	server := grpc.NewServer(grpclimit.Gate(gate).ServerOptions()...)

	call(server)
	// Output:
	// OK
	// OK
	// ResourceExhausted
}

// Messages of streams are slowed down to a hundred a second of each client, instead of being
// refused.
func ExampleOptions() {
	streams := tidegate.New(memory.New(), tidegate.PerSecond(100))
	limits := grpclimit.Options{Messages: true, MessageWait: 10 * time.Second}.Limit(streams, httplimit.IP())
	server := grpc.NewServer(limits.ServerOptions()...)

	call(server)
	// Output:
	// OK
	// OK
	// OK
}

// A client that waits when it is told to: its third call takes a second and succeeds.
func ExampleNewClient() {
	lim := tidegate.New(memory.New(), tidegate.PerSecond(2))
	server := grpc.NewServer(grpclimit.Limit(lim, httplimit.IP()).ServerOptions()...)

	client := grpclimit.NewClient(grpclimit.ClientOptions{})
	call(server, client.DialOptions()...)
	// Output:
	// OK
	// OK
	// OK
}
