package rls

import (
	"math"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

// Bounds of a connection.
const (
	maxStreams      = 1000
	maxHeaderBytes  = 16 << 10
	connectionGrace = 10 * time.Second

	// streamWorkers is how many goroutines wait for calls, with stacks that have grown already.
	// If there are more calls at once, the others get goroutines of their own.
	streamWorkers = 128
)

// ServerOptions returns the options of the gRPC server. age is how old a connection may get; less than
// 0 means that there is no bound.
func ServerOptions(age time.Duration) []grpc.ServerOption {
	if age < 0 {
		age = math.MaxInt64
	}
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(MaxMessage),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.ConnectionTimeout(10 * time.Second),
		grpc.NumStreamWorkers(streamWorkers),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionAge: age, MaxConnectionAgeGrace: connectionGrace,
			Time: time.Minute, Timeout: 20 * time.Second, // closes connections whose client is gone without a word
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
	}
}
