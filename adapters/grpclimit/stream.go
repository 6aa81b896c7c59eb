package grpclimit

import (
	"context"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"tidegate.dev/tidegate"
)

// Stream is a [grpc.StreamServerInterceptor].
func (s *Server) Stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	if s.o.Exempt(info.FullMethod) {
		return handler(srv, ss)
	}
	c, refused := s.admit(ss.Context(), info.FullMethod)
	if refused != nil {
		ss.SetTrailer(refused.trailer)
		return refused.err
	}
	defer func() { c.end(err) }()
	stream := &serverStream{ServerStream: ss, call: c}
	if s.o.Messages && info.IsClientStream {
		c.request.Method = methodMessage
		counted := &countedStream{serverStream: stream, server: s, method: info.FullMethod}
		defer counted.hold(nil)
		err = handler(srv, counted)
		if refused := counted.refused.Load(); refused != nil {
			err = refused.err // even if the handler returned nil: a message of the client was dropped
		}
	} else {
		err = handler(srv, stream)
	}
	c.returned = true
	if !stream.described.Swap(true) {
		ss.SetTrailer(c.told)
	}
	return err
}

// serverStream adds the rate limit headers to the first thing that the handler sends.
// A stream that ends before anything is sent has them in its trailer, because its client could
// not retry by itself after headers.
type serverStream struct {
	grpc.ServerStream
	call      *call
	described atomic.Bool
}

// Context implements [grpc.ServerStream].
func (s *serverStream) Context() context.Context { return s.call.ctx }

// SendHeader implements [grpc.ServerStream].
func (s *serverStream) SendHeader(md metadata.MD) error {
	s.describe()
	return s.ServerStream.SendHeader(md)
}

// SendMsg implements [grpc.ServerStream].
func (s *serverStream) SendMsg(m any) error {
	s.describe()
	return s.ServerStream.SendMsg(m)
}

// describe sets the rate limit headers, once: in the trailer if headers have been sent already.
func (s *serverStream) describe() {
	if s.described.Load() || s.described.Swap(true) {
		return
	}
	if s.ServerStream.SetHeader(s.call.told) != nil { // the handler has already sent headers with grpc.SendHeader
		s.ServerStream.SetTrailer(s.call.told)
	}
}

// countedStream is a serverStream that also decides about each message that the client sends.
type countedStream struct {
	*serverStream
	server  *Server
	method  string
	refused atomic.Pointer[refusal]

	mu    sync.Mutex
	visit visit // of the message that the handler has; nil if there is nothing to do at its end
}

// RecvMsg implements [grpc.ServerStream]. When the handler asks for the next message, it is done
// with the previous one. After a refusal it returns only that.
func (s *countedStream) RecvMsg(m any) error {
	s.hold(nil)
	if refused := s.refused.Load(); refused != nil {
		return refused.err
	}
	if err := s.serverStream.RecvMsg(m); err != nil {
		return err
	}
	v, refused := s.server.admitMessage(s.call, s.method)
	if refused != nil {
		s.refused.Store(refused)
		s.SetTrailer(refused.trailer)
		return refused.err
	}
	s.hold(v)
	return nil
}

// hold ends the visit of the previous message, and keeps that of the next one.
func (s *countedStream) hold(next visit) {
	s.mu.Lock()
	before := s.visit
	s.visit = next
	s.mu.Unlock()
	if before != nil {
		_ = before.End(tidegate.Outcome{})
	}
}

// admitMessage decides about a message. A refused one is decided again after its RetryAfter, for up
// to Options.MessageWait in all; an admitted one waits for its turn, however long.
func (s *Server) admitMessage(c *call, method string) (visit, *refusal) {
	ctx := c.request.Context()
	for left := s.o.MessageWait; ; {
		d, v := s.decider.decide(c.request)
		s.observe(ctx, method, d)
		wait := d.Wait
		if !d.OK {
			refused := s.refuse(ctx, &d)
			if refused.after == 0 || refused.after > left {
				refused.trailer[pushback] = []string{noPushback} // the handler has run: a retry would repeat its work
				return nil, refused
			}
			wait = refused.after
			left -= wait
		}
		if wait > 0 && !sleep(ctx, wait) {
			if v != nil {
				_ = v.End(tidegate.Outcome{})
			}
			return nil, ended(ctx)
		}
		if d.OK {
			return v, nil
		}
	}
}
