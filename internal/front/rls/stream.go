package rls

import (
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// streamGrace is how long streams go on when the server shuts down.
	streamGrace = 250 * time.Millisecond
	// maxWatchers bounds the streams of health and reflection: they have no end of their own.
	maxWatchers = 1024
)

// stream runs the handler of a stream. Streams have no end of their own, and a server that
// shuts down does not wait for them.
func (s *Server) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	ended := func() {}
	if strings.HasPrefix(info.FullMethod, "/grpc.") {
		if s.streams.Add(1) > maxWatchers {
			s.streams.Add(-1)
			return status.Error(codes.ResourceExhausted, "too many streams are open")
		}
		ended = func() { s.streams.Add(-1) }
	}
	done := make(chan error, 1)
	go func() {
		defer ended()
		defer s.recovered(func(err error) { done <- status.Error(codes.Internal, err.Error()) })
		done <- handler(srv, ss)
	}()
	select {
	case err := <-done:
		return err
	case <-s.ending:
		return status.Error(codes.Unavailable, "this server is about to end")
	}
}

func (s *Server) endStreams() { s.end.Do(func() { close(s.ending) }) }
