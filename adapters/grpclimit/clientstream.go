package grpclimit

import (
	"context"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// maxKept is how many bytes of a stream are kept for a repetition: the initial window of an HTTP/2
// stream, so that repeating them does not wait for the server, which may itself be waiting for this
// client to receive.
const maxKept = 1<<16 - 1

// messageHead is how many bytes gRPC sends before each message.
const messageHead = 5

// Stream is a [grpc.StreamClientInterceptor]. A stream can be repeated until a message has been
// received, or more than 64 KiB were sent.
func (c *Client) Stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	c.budget.earn()
	open := func() (grpc.ClientStream, error) { return streamer(ctx, desc, cc, method, opts...) }
	first, err := open()
	if err != nil {
		return nil, err
	}
	return &clientStream{client: c, ctx: ctx, method: method, open: open, current: first, attempts: 1, over: make(chan struct{})}, nil
}

// clientStream is a stream that is opened again after a refusal. Its current attempt is committed
// once it can no longer be repeated.
type clientStream struct {
	client *Client
	ctx    context.Context
	method string
	open   func() (grpc.ClientStream, error)

	receive sync.Mutex // held while an attempt is received from; locked before mu

	mu        sync.Mutex
	current   grpc.ClientStream
	over      chan struct{} // closed when current is replaced or committed
	attempts  int
	sent      []any // messages to send again
	size      int   // of these
	closed    bool  // after CloseSend
	committed bool  // the current attempt can no longer be repeated
	failed    error // the next RecvMsg returns it
}

// attempt returns the current attempt, and the error that the next RecvMsg returns, if there is one.
func (s *clientStream) attempt() (current grpc.ClientStream, failed error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current, s.failed
}

// Context implements [grpc.ClientStream].
func (s *clientStream) Context() context.Context {
	current, _ := s.attempt()
	return current.Context()
}

// Trailer implements [grpc.ClientStream].
func (s *clientStream) Trailer() metadata.MD {
	current, _ := s.attempt()
	return current.Trailer()
}

// Header implements [grpc.ClientStream].
func (s *clientStream) Header() (metadata.MD, error) {
	for {
		current, failed := s.attempt()
		md, err := current.Header()
		if md != nil || err != nil || failed != nil {
			s.commit()
			return md, err
		}
		if !s.replaced(current) {
			return nil, nil // RecvMsg returns the error
		}
	}
}

// replaced makes another attempt if one is allowed after ended, which has ended without headers, and
// reports whether there is one. If another goroutine is in RecvMsg, that one makes the attempt, and
// replaced waits only for the attempt, since RecvMsg itself may then take long.
func (s *clientStream) replaced(ended grpc.ClientStream) bool {
	s.mu.Lock()
	current, over := s.current, s.over
	s.mu.Unlock()
	if current != ended {
		return true
	}
	if s.receive.TryLock() {
		defer s.receive.Unlock()
		return s.retryEnded(ended)
	}
	<-over // at the latest with the context, which ends the attempt
	current, _ = s.attempt()
	return current != ended
}

// CloseSend implements [grpc.ClientStream].
func (s *clientStream) CloseSend() error {
	s.mu.Lock()
	s.closed = true
	current := s.current
	s.mu.Unlock()
	return current.CloseSend()
}

// SendMsg implements [grpc.ClientStream]. gRPC forbids callers to modify m afterwards, so it can be
// kept.
func (s *clientStream) SendMsg(m any) error {
	s.mu.Lock()
	current := s.current
	s.keepLocked(m)
	s.mu.Unlock()
	err := current.SendMsg(m)
	if err != io.EOF {
		return err
	}
	// The server has ended the attempt. If another goroutine is in RecvMsg, it learns why, and
	// sends m again; or it has done so already, and the next attempt continues.
	if !s.receive.TryLock() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.committed && s.current == current {
			return io.EOF
		}
		return nil
	}
	defer s.receive.Unlock()
	if md, _ := current.Header(); md == nil && s.retryEnded(current) {
		return nil
	}
	return io.EOF
}

// keepLocked keeps m for another attempt. A message whose size is unknown cannot be kept.
func (s *clientStream) keepLocked(m any) {
	if s.committed {
		return
	}
	message, ok := m.(proto.Message)
	if ok {
		s.size += proto.Size(message) + messageHead
	}
	if !ok || s.size > maxKept {
		s.commitLocked()
		return
	}
	s.sent = append(s.sent, m)
}

// RecvMsg implements [grpc.ClientStream].
func (s *clientStream) RecvMsg(m any) error {
	s.receive.Lock()
	defer s.receive.Unlock()
	for {
		current, failed := s.attempt()
		if failed != nil {
			return failed
		}
		err := current.RecvMsg(m)
		if err == nil || err == io.EOF {
			s.commit()
			return err
		}
		if err := s.retry(current, err); err != nil {
			return err
		}
	}
}

// retryEnded finds out why an attempt has ended without headers, makes another one if that is allowed,
// and reports whether there is one. The caller holds receive.
func (s *clientStream) retryEnded(ended grpc.ClientStream) bool {
	current, failed := s.attempt()
	if current != ended {
		return true
	}
	if failed != nil || s.isCommitted() {
		return false
	}
	err := ended.RecvMsg(nil) // there is no message to receive
	if err != nil && err != io.EOF {
		err = s.retry(ended, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed = err; err != nil {
		s.commitLocked()
	}
	return err == nil
}

// retry waits until an attempt that ended with refused may be repeated, and replaces it by another
// one. If it may not be repeated, retry returns the error for the caller. It holds mu while it waits.
func (s *clientStream) retry(ended grpc.ClientStream, refused error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.committed {
		return refused
	}
	if err := s.client.wait(s.ctx, s.method, s.attempts, refused, ended.Trailer()); err != nil {
		s.commitLocked()
		return err
	}
	next, err := s.open()
	if err != nil {
		s.commitLocked()
		return err
	}
	s.attempts++
	s.current = next
	close(s.over)
	s.over = make(chan struct{})
	for _, m := range s.sent {
		if next.SendMsg(m) != nil {
			return nil // RecvMsg returns the error
		}
	}
	if s.closed {
		_ = next.CloseSend() // never fails
	}
	return nil
}

func (s *clientStream) commit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commitLocked()
}

func (s *clientStream) commitLocked() {
	if !s.committed {
		close(s.over)
	}
	s.committed, s.sent = true, nil
}

func (s *clientStream) isCommitted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.committed
}
