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

	// streamWorkers answer calls, and keep stacks that have grown already. With more calls
	// at once, the others have goroutines of their own.
	streamWorkers = 128
)

// ServerOptions are those of the gRPC server. age is how old a connection gets; less than 0
// means any.
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
			Time: time.Minute, Timeout: 20 * time.Second, // who is gone without a word
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
	}
}
